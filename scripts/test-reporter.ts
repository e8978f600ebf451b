// The reporter of `npm test`: Node's own `spec`, which prints the slowest tests before its summary.
import { relative } from 'node:path';
import { Readable } from 'node:stream';
import { spec, type TestEvent } from 'node:test/reporters';

const SLOWEST_COUNT = 10;

interface TimedTest {
  readonly name: string;
  readonly file: string;
  readonly milliseconds: number;
}

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  yield* Readable.from(withSlowestTests(events)).pipe(new spec());
}

/** Yields the events, with the slowest tests as messages of the runner before the first line of its summary. */
async function* withSlowestTests(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const tests: TimedTest[] = [];
  for await (const event of events) {
    if (event.type === 'test:pass' && event.data.details.type !== 'suite') {
      const { name, file = '', details } = event.data;
      tests.push({ name, file, milliseconds: details.duration_ms });
    }
    if (isStartOfSummary(event)) yield* slowestOf(tests).map(messageOf);
    yield event;
  }
}

function isStartOfSummary({ type, data }: TestEvent): boolean {
  return type === 'test:diagnostic' && data.nesting === 0 && data.message.startsWith('tests ');
}

function slowestOf(tests: readonly TimedTest[]): TimedTest[] {
  return tests.toSorted((one, other) => other.milliseconds - one.milliseconds).slice(0, SLOWEST_COUNT);
}

function messageOf({ name, file, milliseconds }: TimedTest): TestEvent {
  const message = `${(milliseconds / 1000).toFixed(1)} s: ${name} (${relative(process.cwd(), file)})`;
  return { type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } };
}
