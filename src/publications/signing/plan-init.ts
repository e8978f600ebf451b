import type { Splice, SplicePlan } from '#bytes/splice-plan.ts';
import { c2paUuidBoxHead } from '#formats/isobmff/c2pa-box.ts';
import { FRAGMENT_ALGORITHM } from './fragment-algorithm.ts';
import { hashedBox } from './hashed-box.ts';
import type { InitLayout } from './init-layout.ts';

/** A file type box for init segments that have none: readers look for the manifest behind it. */
const DEFAULT_FTYP = Buffer.from('00000014667479706973_6f36_00000000_69736f36'.replaceAll('_', ''), 'hex');

/**
 * Plans the signed form of an init segment: the manifest box after ftyp, earlier ones left out. The plan's digest is the
 * `initHash`; it depends on the manifest's size, not on the manifest. Boxes listed in `leaveOut` are not written: a
 * segment index makes no sense where the media have moved to files of their own.
 */
export function planInit(layout: InitLayout, manifestSizeBytes: number, leaveOut: readonly string[] = []): SplicePlan {
  const header = c2paUuidBoxHead('manifest', manifestSizeBytes);
  const splices: Splice[] = [];
  let position = 0;
  const addManifest = (): void => {
    splices.push({ kind: 'insert', bytes: header, into: 'none' }, { kind: 'hole', length: manifestSizeBytes });
    position += header.length + manifestSizeBytes;
  };
  if (layout.boxes[0]?.type !== 'ftyp') {
    splices.push({ kind: 'insert', bytes: DEFAULT_FTYP, into: 'none' });
    position += DEFAULT_FTYP.length;
    addManifest();
  }
  for (const box of layout.boxes) {
    if (leaveOut.includes(box.type)) continue;
    splices.push(...hashedBox(box, position, null));
    position += box.sizeBytes;
    if (box.type === 'ftyp') addManifest();
  }
  return { splices, hashing: { algorithm: FRAGMENT_ALGORITHM } };
}
