// `npm run docs`: writes docs/errors.md from the catalogue. A test fails where the page is not what this writes.
import { writeFileSync } from 'node:fs';
import { catalogue, warningCatalogue } from '#errors/catalogue.ts';
import type { DependencyKind, ErrorClass } from '#errors/entry.ts';

const PAGE = new URL('../docs/errors.md', import.meta.url);

const INTRODUCTION = `# Errors and warnings

<!-- Written by "npm run docs" from the catalogue in src/errors: change that. -->

Every error has a reason, which is stable and stands in \`error.details.reason\` of an answer, in \`error_details.reason\` of
a result entry and in \`reason\` of a log line, and one of the codes of the API, which stands in \`error_code\` or
\`error.code\`. The message says what is wrong, where, and what to do; words in ‹brackets› stand for what it names, and ‹n›
for a number.

Errors marked with "↻" may pass without anybody changing anything: the service tries the input again by itself, and a
request can be sent again. Errors marked with "⏸" say that a part of the deployment is away: the input waits until it is back, for
\`jobs.outage_hours\` at most. With "(⏸)" it waits only where the service cannot use that part itself when it tries.

[Warnings](#warnings) have reasons of their own, in \`warning_details[].reason\` of a result entry. They stand beside an output
that was made all the same; with \`params.strict\`, packaging fails instead.
`;

/** Returns a stand-in for a number that a message prints with some decimals. */
function numberStandIn(name: string) {
  return { toFixed: () => `‹${name}›` };
}

/** The result of a calculation with a stand-in, and what the page shows of it. */
const NOT_A_NUMBER = /\bNaN\b/g;
const CALCULATED = '‹n›';

/** Stand-ins for one detail of a message, tried in this order: most are texts; some are lists, numbers, a value of a closed set, or absent. */
const STAND_INS: readonly ((name: string) => unknown)[] = [
  (name) => `‹${name}›`,
  (name) => [`‹${name}›`],
  () => [{ file: '‹file›', problem: '‹problem›' }],
  numberStandIn,
  () => 'cpu_time',
  () => null,
];
/** Messages have few details; more combinations than this are not tried. */
const MAX_COMBINATIONS = 6 ** 6;
/** Details of a closed set of values, and those of nested objects, which a message does not ask for by name. */
const KNOWN_DETAILS = {
  treatment: 'copied',
  what: 'files',
  playlist: '‹playlist›',
  line: '‹line›',
  names: ['‹name›'],
  differences: [{ key: '‹key›', here: '‹here›', there: '‹there›' }],
  films: [{ file: '‹file›', seconds: numberStandIn('seconds') }],
  codecs: [{ codec: '‹codec›', languages: ['‹language›'] }],
};

/** The columns of an error or a warning. */
interface Row {
  readonly class?: ErrorClass;
  readonly dependencies?: readonly DependencyKind[];
  readonly message: (details: object) => string;
}

/** Returns the text of docs/errors.md. */
export function errorsPage(): string {
  const byCode = Map.groupBy(Object.entries(catalogue), ([, { code }]) => code);
  const sections = [...byCode.entries()].map(([code, entries]) => {
    return tableOf(`\`${code}\``, entries as [string, Row][]);
  });
  return [INTRODUCTION, ...sections, tableOf('Warnings', Object.entries(warningCatalogue) as [string, Row][])].join(
    '\n',
  );
}

function tableOf(title: string, entries: readonly [string, Row][]): string {
  const rows = entries.map(([reason, row]) => rowOf(reason, row));
  return `## ${title}\n\n| reason | message |\n|---|---|\n${rows.join('\n')}\n`;
}

function rowOf(reason: string, entry: Row): string {
  const message = messageOf(entry)
    .replaceAll('|', '\\|')
    .replaceAll(/\s*\n\s*/g, ' ');
  return `| \`${reason}\`${markOf(entry)} | ${message} |`;
}

function markOf({ class: errorClass, dependencies = [] }: Row): string {
  if (errorClass === 'retry') return ' ↻';
  if (errorClass === 'outage') return ' ⏸';
  return dependencies.length > 0 ? ' (⏸)' : '';
}

/** Returns a message with names of details in place of their values: with the first stand-ins that make a whole text. */
function messageOf({ message }: Row): string {
  const names = detailNamesOf(message);
  const combinations = Math.min(STAND_INS.length ** names.length, MAX_COMBINATIONS);
  for (let number = 0; number < combinations; number += 1) {
    const text = tryMessage(message, standInsFor(names, number));
    if (text !== null) return text;
  }
  throw new Error(`no stand-ins make a message of: ${message}`);
}

function standInsFor(names: readonly string[], number: number): object {
  const entries = names.map((name, index) => {
    const choice = Math.floor(number / STAND_INS.length ** index) % STAND_INS.length;
    return [name, STAND_INS[choice]?.(name)];
  });
  return { count: '‹count›', ...KNOWN_DETAILS, ...Object.fromEntries(entries) };
}

function tryMessage(message: (details: object) => string, details: object): string | null {
  try {
    const text = message(details);
    return /undefined|\[object/.test(text) ? null : text.replaceAll(NOT_A_NUMBER, CALCULATED);
  } catch {
    // These stand-ins are of the wrong kind.
    return null;
  }
}

/** Returns the names of the details that a message is made from, in the order in which it takes them. */
function detailNamesOf(message: (details: object) => string): string[] {
  const names = new Set<string>();
  const recorder = new Proxy({}, { get: (_, name) => void names.add(String(name)) });
  tryMessage(message, recorder);
  return [...names].filter((name) => !Object.hasOwn(KNOWN_DETAILS, name));
}

if (import.meta.main) writeFileSync(PAGE, errorsPage());
