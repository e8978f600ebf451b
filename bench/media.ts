import { randomFillSync } from 'node:crypto';
import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { EncodedPacket, EncodedVideoPacketSource, FilePathTarget, Mp4OutputFormat, Output } from 'mediabunny';

/** Size of a coded frame: that of 4K video at some 12 Mbit/s and 25 frames a second. */
const FRAME_BYTES = 60_000;
const FRAMES_PER_SECOND = 25;
const KEY_FRAME_EVERY = 50;

/** An H.264 configuration (ISO/IEC 14496-15 §5.3.3) of 1920 × 1080; what it configures are random bytes. */
export const AVCC = Buffer.from(
  '0164002affe1001c6764002aacd940780227e5c05a8080809f00000300010000030032f183196001000668ebe3cb22c0',
  'hex',
);

/** Writes an MP4 of random frames: `moov` first with a full sample table, then one `mdat` of about `sizeBytes`. */
export async function writeVideo(path: string, sizeBytes: number): Promise<void> {
  const source = new EncodedVideoPacketSource('avc');
  const frames = Math.ceil(sizeBytes / FRAME_BYTES);
  const format = new Mp4OutputFormat({ fastStart: 'reserve' });
  const output = new Output({ format, target: new FilePathTarget(path) });
  output.addVideoTrack(source, { frameRate: FRAMES_PER_SECOND, maximumPacketCount: frames });
  await output.start();
  const decoderConfig = { codec: 'avc1.64002a', codedWidth: 1920, codedHeight: 1080, description: AVCC };
  const bytes = new Uint8Array(FRAME_BYTES);
  for (let frame = 0; frame < frames; frame += 1) {
    randomFillSync(bytes);
    const type = frame % KEY_FRAME_EVERY === 0 ? 'key' : 'delta';
    const packet = new EncodedPacket(bytes.slice(), type, frame / FRAMES_PER_SECOND, 1 / FRAMES_PER_SECOND);
    await source.add(packet, { decoderConfig });
  }
  await output.finalize();
}

/** Adds a second `mdat` of random bytes, which no sample points into: such a file is bound with one flat hash. */
export function addSecondMediaBox(path: string, sizeBytes: number): void {
  const file = openSync(path, 'a');
  const header = Buffer.alloc(8);
  header.writeUInt32BE(8 + sizeBytes, 0);
  header.write('mdat', 4, 'latin1');
  writeSync(file, header);
  const block = new Uint8Array(1024 * 1024);
  for (let left = sizeBytes; left > 0; left -= block.length) {
    writeSync(file, randomFillSync(block), 0, Math.min(left, block.length));
  }
  closeSync(file);
}

/** Writes WAV files of random 16-bit mono samples and returns their paths. */
export function writeSounds(folder: string, count: number, sizeBytes: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const path = join(folder, `sound-${String(index).padStart(4, '0')}.wav`);
    writeFileSync(path, soundOf(sizeBytes));
    return path;
  });
}

function soundOf(sizeBytes: number): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(sizeBytes - 8, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(22_050, 24);
  header.writeUInt32LE(44_100, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(sizeBytes - 44, 40);
  return Buffer.concat([header, randomFillSync(Buffer.alloc(sizeBytes - 44))]);
}
