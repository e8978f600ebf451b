/**
 * Measures the unit of processor time that limits are multiples of, in milliseconds: what a fixed piece of work takes on this
 * machine now, the median of five times. Some 25 in a new process on a machine of 2026 that does nothing else.
 */
export function timeUnitMs(): number {
  const times = [1, 2, 3, 4, 5].map(() => {
    const before = process.cpuUsage();
    parseNames();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return times.sort((a, b) => a - b)[2] as number;
}

/** Does what parsers do: strings, regular expressions, BigInts, objects and a map, more than a cache holds. */
function parseNames(): void {
  const known = new Map<string, { readonly time: bigint; readonly text: string }>();
  let time = 0n;
  for (let index = 0; index < 20_000; index += 1) {
    time += BigInt(index);
    const text = `fragment-${index}-${time}.m4s`;
    const [, number = ''] = /^fragment-(\d+)-\d+\.m4s$/.exec(text) ?? [];
    known.set(number, { time, text });
  }
}
