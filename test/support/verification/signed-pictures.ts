import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Builder } from '@contentauth/c2pa-node';
import { pemOf } from '#provenance/identity/pem.ts';
import { defaultIdentity } from '../manifests/test-identity.ts';
import { makeMedia } from '../media/make-media.ts';

/** Pictures that the official SDK signs, by name: the media type, and the arguments that ffmpeg makes them with. */
export const PICTURES: Readonly<Record<string, readonly [mediaType: string, args: string]>> = {
  'a.jpg': ['image/jpeg', '-pix_fmt yuvj420p'],
  'a.png': ['image/png', ''],
  'a.gif': ['image/gif', ''],
  'a.webp': ['image/webp', '-c:v libwebp'],
  'a.tiff': ['image/tiff', ''],
};

/** The padding of a signature, into which a forger puts something else. */
const PADDING_BYTES = 24_000;

/** Makes a picture, and has the official SDK sign it. Its manifest holds a text. */
export async function signPicture(name: string, folder: string, text = ''): Promise<Buffer> {
  const [mimeType, args] = PICTURES[name] as readonly [string, string];
  makeMedia(folder, [...`-f lavfi -i testsrc2=s=64x48 -frames:v 1 ${args}`.trim().split(' '), name]);
  const builder = Builder.withJson(
    {
      title: name,
      claim_generator_info: [{ name: 'test', version: '1' }],
      assertions: [{ label: 'com.example.text', data: { text } }],
    } as never,
    { verify: { verify_after_sign: false }, builder: { thumbnail: { enabled: false } } } as never,
  );
  builder.setIntent({ create: 'http://cv.iptc.org/newscodes/digitalsourcetype/digitalCapture' } as never);
  const { chain, signer } = defaultIdentity;
  const certs = [Buffer.from(chain.map(pemOf).join(''))];
  const output: { buffer: Buffer | null } = { buffer: null };
  await builder.signConfigAsync(
    (bytes: Buffer) => signer.sign(bytes),
    { alg: 'es256', certs, reserveSize: PADDING_BYTES, directCoseHandling: false } as never,
    { buffer: readFileSync(join(folder, name)), mimeType },
    output as never,
  );
  if (output.buffer === null) throw new Error(`${name} was not signed`);
  return output.buffer;
}

/** Returns a segment of JPEG (ITU-T T.81 §B.1.1.4). */
export function jpegSegment(marker: number, data: Uint8Array): Buffer {
  const header = Buffer.from([0xff, marker, 0, 0]);
  header.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([header, data]);
}

/** Returns the segment of JPEG with a part of a box (ISO/IEC 18477-3, annex B). */
export function boxSegment(part: Uint8Array, sequenceNumber: number, instance = 0x211): Buffer {
  const header = Buffer.from('4a50000000000000', 'hex');
  header.writeUInt16BE(instance, 2);
  header.writeUInt32BE(sequenceNumber, 4);
  return jpegSegment(0xeb, Buffer.concat([header, part]));
}

/** A picture in JPEG, taken apart: its manifest store lies in one segment of instance 0x211. */
export interface SignedJpeg {
  readonly before: Buffer;
  readonly store: Buffer;
  readonly behind: Buffer;
}

export function takeJpegApart(bytes: Buffer): SignedJpeg {
  const at = bytes.indexOf('ffeb', 'hex');
  const end = at + 2 + bytes.readUInt16BE(at + 2);
  return { before: bytes.subarray(0, at), store: bytes.subarray(at + 12, end), behind: bytes.subarray(end) };
}
