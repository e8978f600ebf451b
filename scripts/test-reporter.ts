// The reporter of the tests: Node's own `spec`, with each failure in full where it happens. Before its summary it prints the
// slowest tests, and the failures again, so short that they fit on a screen, each with the command that runs it alone.
import { relative } from 'node:path';
import { spec, type TestEvent } from 'node:test/reporters';
import { inspect } from 'node:util';

/** `SLOWEST_TESTS=10000` lists all of them, by time. */
const SLOWEST_COUNT = Number(process.env['SLOWEST_TESTS'] ?? 10);
const MAX_FAILURES = 6;
const MAX_REASON_LINES = 3;
const MAX_LINE_LENGTH = 160;

type Failure = Extract<TestEvent, { type: 'test:fail' }>['data'] & {
  /** The file that was run; `file` is the one that defines the test. */
  readonly entryFile?: string;
};

interface TimedTest {
  readonly name: string;
  readonly file: string;
  readonly milliseconds: number;
}

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const lines = new spec().setEncoding('utf8');
  const tests: TimedTest[] = [];
  const failures: Failure[] = [];
  for await (const event of events) {
    if (event.type === 'test:pass' && event.data.details.type !== 'suite') {
      const { name, file = '', details } = event.data;
      tests.push({ name, file, milliseconds: details.duration_ms });
    }
    if (isStartOfSummary(event)) yield `${slowestOf(tests).map(timeOf).join('')}${failuresOf(failures)}`;
    // The summary of the whole run would have `spec` print all failures once more, in full.
    if (event.type !== 'test:summary' || event.data.file !== undefined) lines.write(event);
    yield lines.read() ?? '';
    if (event.type === 'test:fail' && !isConsequence(event.data)) {
      failures.push(event.data);
      yield `${inspect(causeOf(event.data)).replace(/^/gm, '    ')}\n`;
    }
  }
}

function isStartOfSummary({ type, data }: TestEvent): boolean {
  return type === 'test:diagnostic' && data.nesting === 0 && data.message.startsWith('tests ');
}

function slowestOf(tests: readonly TimedTest[]): TimedTest[] {
  return tests.toSorted((one, other) => other.milliseconds - one.milliseconds).slice(0, SLOWEST_COUNT);
}

function timeOf({ name, file, milliseconds }: TimedTest): string {
  return `${(milliseconds / 1000).toFixed(1)} s: ${name} (${relative('', file)})\n`;
}

/** Returns true for a test that failed because another one did, or because its set-up failed. */
function isConsequence({ details: { error } }: Failure): boolean {
  const { failureType } = error as Error & { failureType?: string };
  return failureType === 'subtestsFailed' || failureType === 'cancelledByParent';
}

function causeOf({ details: { error } }: Failure): unknown {
  return error.cause instanceof Error ? error.cause : error;
}

function failuresOf(failures: readonly Failure[]): string {
  if (failures.length === 0) return '';
  const more = failures.length - MAX_FAILURES;
  const rest = more > 0 ? `  and ${more} more, above: look for ✖\n` : '';
  return `\n${failures.length} failed:\n${failures.slice(0, MAX_FAILURES).map(failureOf).join('')}${rest}\n`;
}

/** Describes a failure: name and place of the test, the first lines of the reason, and the command that runs it alone. */
function failureOf(failure: Failure): string {
  const { name, file = '', line, entryFile = file } = failure;
  const cause = causeOf(failure);
  const reason = cause instanceof Error ? cause.message : String(cause);
  const lines = reason.split('\n').filter((text) => text.trim() !== '');
  const path = relative('', entryFile);
  // A file that ended early is reported under its path.
  const only = name === path ? '' : `--test-name-pattern='${patternOf(name)}' `;
  return [
    `✖ ${name} (${relative('', file)}:${line})`,
    ...lines.slice(0, MAX_REASON_LINES).map((text) => `    ${text.slice(0, MAX_LINE_LENGTH)}`),
    `    npx node --test ${only}${path}`,
    '',
  ].join('\n');
}

/** Returns a regular expression for a name, which can stand between single quotes. */
function patternOf(name: string): string {
  return name.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&').replaceAll("'", '.');
}
