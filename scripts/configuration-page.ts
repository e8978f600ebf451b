// `npm run docs`: writes docs/configuration.md from config/service.toml (meanings, examples) and the schema (types, bounds,
// defaults). A test fails where the page is not what this writes.
import { readFileSync, writeFileSync } from 'node:fs';
import { keySchemas } from '#config/config-schema.ts';

const TOML = new URL('../config/service.toml', import.meta.url);
const PAGE = new URL('../docs/configuration.md', import.meta.url);

/** A key as config/service.toml shows it: `#key = default`, or `# unset (why): key = example`. */
const KEY_LINE = /^#(?<isUnset> unset(?: \((?<unset>.*?)\))?: )?(?<key>[a-z][a-z0-9_.]*) = (?<value>.*)$/;
const SECTION_LINE = /^\[(?<section>[a-z_.]+)\]$/;

const INTRODUCTION = `# Configuration

<!-- Written by "npm run docs" from config/service.toml and the schema: change those. -->

Nothing has to be configured. The service reads \`config/service.toml\`; the variable \`SERVICE_CONFIG_PATH\` names another
file. Every key can be set by a variable \`SERVICE__SECTION__KEY\`, which wins over the file: sections in sections are joined
the same way, and lists are comma-separated (\`SERVICE__OUTPUT_SINKS__LOCAL__NAMING=in_place\`, \`SERVICE__AUTH__TOKENS=a,b\`).
Relative paths are taken from the folder that the service is started in. Unknown keys and wrong types stop the start, with a
message that lists all of them.
`;

/** The part of a JSON schema that bounds one key. */
interface KeySchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, KeySchema>>;
  readonly items?: KeySchema;
  readonly anyOf?: readonly KeySchema[];
}

/** Returns the text of docs/configuration.md. */
export function configurationPage(toml = readFileSync(TOML, 'utf8')): string {
  const schema = keySchemas() as KeySchema;
  const parts = [INTRODUCTION];
  let section = '';
  let comment: string[] = [];
  for (const line of toml.split('\n')) {
    const newSection = SECTION_LINE.exec(line)?.groups?.['section'];
    const key = KEY_LINE.exec(line)?.groups;
    if (newSection !== undefined) {
      section = newSection;
      comment = [];
      parts.push(`## \`[${section}]\`\n`);
    } else if (section !== '' && key !== undefined) {
      parts.push(keyEntry(`${section}.${key['key']}`, key, comment.join(' '), schema));
      comment = [];
    } else if (line.startsWith('# ')) {
      comment.push(line.slice(2));
    }
  }
  return `${parts.join('\n')}`;
}

function keyEntry(
  path: string,
  line: Readonly<Record<string, string | undefined>>,
  text: string,
  schema: KeySchema,
): string {
  const { isUnset, unset, value } = line;
  const shown =
    isUnset === undefined ? `default \`${value}\`` : `default: ${unset ?? 'unset'}; for example \`${value}\``;
  const bounds = boundsOf(path.split('.').reduce<KeySchema | undefined>((at, key) => at?.properties?.[key], schema));
  return `**\`${path}\`** (${[bounds, shown].filter(Boolean).join('; ')})\n${text === '' ? '' : `${text}\n`}`;
}

function boundsOf(schema: KeySchema | undefined): string {
  if (schema?.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(' or ');
  if (schema?.anyOf !== undefined) return schema.anyOf.map(boundsOf).join(' or ');
  if (schema?.type === 'array') return 'list';
  if (schema?.type !== 'integer' && schema?.type !== 'number') return schema?.type ?? '';
  return `${schema.type} from ${schema.minimum} to ${schema.maximum}`;
}

if (import.meta.main) writeFileSync(PAGE, configurationPage());
