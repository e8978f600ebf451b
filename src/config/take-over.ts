import { AppError } from '#errors/app-error.ts';
import type { Config } from './config.ts';

/** Keys of `signing` that say which identities there are; a reload takes them over. */
const IDENTITY_KEYS: ReadonlySet<string> = new Set([
  'certificate_path',
  'private_key_path',
  'private_key_passphrase',
  'algorithm',
  'default_identity',
  'identities',
  'tsa_url',
] satisfies (keyof Config['signing'])[]);

/**
 * Returns the configuration in force with what a reload takes over of another one: identities, tokens, callers and trust. Names
 * the other keys that differ: they need a restart. Throws `CONFIG_INVALID` where tokens, callers or identities are gone altogether.
 */
export function takeOver(current: Config, next: Config): { readonly config: Config; readonly needsRestart: string[] } {
  requireKept(current, next);
  const { rubrics_dir: rubricsDir } = current.trust;
  const { rubrics_dir: _, ...lists } = next.trust;
  const isOfIdentity = ([key]: [string, unknown]) => IDENTITY_KEYS.has(key);
  const kept = Object.entries(current.signing).filter((entry) => !isOfIdentity(entry));
  const taken = Object.entries(next.signing).filter(isOfIdentity);
  const config = {
    ...current,
    auth: next.auth,
    signing: Object.fromEntries([...kept, ...taken]) as Config['signing'],
    trust: { ...lists, ...(rubricsDir !== undefined && { rubrics_dir: rubricsDir }) },
  };
  return { config, needsRestart: differingKeys(config, next) };
}

/** Part of a file is a valid file, too: without tokens, everybody would be an admin. */
function requireKept(current: Config, next: Config): void {
  const isSet = {
    'auth.tokens': ({ auth }: Config) => auth.tokens.length > 0,
    'auth.callers': ({ auth }: Config) => Object.keys(auth.callers).length > 0,
    'signing.identities': ({ signing }: Config) =>
      signing.certificate_path !== undefined || Object.keys(signing.identities).length > 0,
  };
  const lost = Object.entries(isSet).filter(([, test]) => test(current) && !test(next));
  const problem = 'is not set any more, as in a file that is half written. Set it, or restart the service without it';
  if (lost.length > 0) throw new AppError('CONFIG_INVALID', { problems: lost.map(([key]) => `${key}: ${problem}`) });
}

/** Returns the dotted paths of the keys whose values differ, as deep as both are tables. */
function differingKeys(one: object, other: object, prefix = ''): string[] {
  const values = (table: object, key: string) => (table as Record<string, unknown>)[key];
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((key) => {
    const [here, there] = [values(one, key), values(other, key)];
    if (isTable(here) && isTable(there)) return differingKeys(here, there, `${prefix}${key}.`);
    return JSON.stringify(here) === JSON.stringify(there) ? [] : [`${prefix}${key}`];
  });
}

function isTable(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
