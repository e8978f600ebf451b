/** The bytes that signing added to one segment of a playlist. */
export interface GrownSegment {
  readonly durationSeconds: number;
  readonly addedBytes: number;
}

/** By how much the rates that a playlist declares have to rise, in bits per second, rounded up. */
export interface AddedRates {
  readonly peak: number;
  readonly average: number;
}

/**
 * Computes the bit rate that signing added to a sequence of segments. A peak is taken over at least half the longest
 * segment, as HLS measures it (RFC 8216bis §4.4.6.2), so that a last segment of a few milliseconds says nothing.
 */
export function addedRates(segments: readonly GrownSegment[]): AddedRates {
  const shortestWindow = segments.reduce((longest, { durationSeconds }) => Math.max(longest, durationSeconds), 0) / 2;
  let peak = 0;
  let [seconds, bytes, first] = [0, 0, 0];
  let totalSeconds = 0;
  let totalBytes = 0;
  for (const { durationSeconds, addedBytes } of segments) {
    totalSeconds += durationSeconds;
    totalBytes += addedBytes;
    seconds += durationSeconds;
    bytes += addedBytes;
    // The window ends here and begins as late as its least duration allows.
    for (let leading = segments[first]; leading !== undefined; leading = segments[first]) {
      if (seconds - leading.durationSeconds < shortestWindow) break;
      seconds -= leading.durationSeconds;
      bytes -= leading.addedBytes;
      first += 1;
    }
    if (seconds >= shortestWindow && seconds > 0) peak = Math.max(peak, (bytes * 8) / seconds);
  }
  const average = totalSeconds === 0 ? 0 : Math.max(0, (totalBytes * 8) / totalSeconds);
  return { peak: Math.ceil(Math.max(peak, average)), average: Math.ceil(average) };
}

export const NOTHING_ADDED: AddedRates = { peak: 0, average: 0 };
