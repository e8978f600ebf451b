import type { EmbeddingPlan } from '../format-handler.ts';
import { BMFF_HASH_ALGORITHM, bmffHash, LEAF_SIZE_BYTES } from './bmff-hash.ts';
import { BOX_HEADER_SIZE_BYTES } from './box.ts';
import { c2paUuidBoxHead } from './c2pa-box.ts';
import { type FileBox, isC2paBox } from './file-boxes.ts';
import type { IsobmffLayout } from './layout.ts';
import { merkleBoundBox } from './merkle-binding.ts';
import { moveOffsets } from './move-offsets.ts';
import type { Edit } from './offset-shift.ts';
import { SpliceWriter } from './splice-writer.ts';
import type { Replacement } from './stored-offsets.ts';

/**
 * Puts a manifest box directly after the `ftyp` box (C2PA 2.2, §A.5.1), takes away any that the file has, and adjusts
 * every offset that the file stores. The media itself is copied.
 */
export function planEmbedding(layout: IsobmffLayout, manifestSizeBytes: number): EmbeddingPlan {
  const front = Buffer.concat([layout.fileType.bytes, c2paUuidBoxHead('manifest', manifestSizeBytes)]);
  const edits = editsOf(layout, front.length + manifestSizeBytes);
  // The overstated box is the last one.
  const writer = new SpliceWriter([...moveOffsets(layout, edits), ...correctedSizes(layout.boxes)]);
  writer.add({ kind: 'insert', bytes: front, into: 'none' }, { kind: 'hole', length: manifestSizeBytes });
  const merkleBox = merkleBoundBox(layout.boxes);
  for (const box of layout.boxes) {
    if (box === layout.fileType.box || isTakenAway(layout, box)) continue;
    if (isC2paBox(box)) writer.writeBlankBox(box.sizeBytes);
    else if (box === merkleBox) writer.writeMerkleBox(box);
    else writer.writeBox(box);
  }
  writeTail(writer, layout);
  const leafSize = merkleBox === null ? {} : { leafSizeBytes: LEAF_SIZE_BYTES };
  return {
    plan: { splices: writer.splices, hashing: { algorithm: BMFF_HASH_ALGORITHM, ...leafSize } },
    binding: bmffHash,
  };
}

/** The sizes of boxes whose headers claim more than there is. */
function correctedSizes(boxes: readonly FileBox[]): Replacement[] {
  return boxes.flatMap(({ offset, sizeBytes, sizeForm, overstatedBytes }) => {
    if (overstatedBytes === undefined) return [];
    const bytes = Buffer.alloc(sizeForm === 'large' ? 8 : 4);
    if (sizeForm === 'large') bytes.writeBigUInt64BE(BigInt(sizeBytes));
    else bytes.writeUInt32BE(sizeBytes);
    return [{ offset: offset + (sizeForm === 'large' ? BOX_HEADER_SIZE_BYTES : 0), length: bytes.length, bytes }];
  });
}

/** `frontSizeBytes` is the size of the `ftyp` box and the new manifest box together. */
function editsOf(layout: IsobmffLayout, frontSizeBytes: number): Edit[] {
  const { boxes, fileType, tail } = layout;
  const isFirst = fileType.box !== null && fileType.box === boxes[0];
  const front = isFirst
    ? { offset: 0, removedBytes: fileType.bytes.length, insertedBytes: frontSizeBytes }
    : { offset: 0, removedBytes: 0, insertedBytes: frontSizeBytes };
  const takenAway = boxes.filter((box) => isTakenAway(layout, box) || (!isFirst && box === fileType.box));
  return [
    front,
    ...takenAway.map(({ offset, sizeBytes }) => ({ offset, removedBytes: sizeBytes, insertedBytes: 0 })),
    ...(isBox(tail) ? [{ offset: tail.offset, removedBytes: 0, insertedBytes: BOX_HEADER_SIZE_BYTES }] : []),
  ];
}

/** Old C2PA boxes go, but between fragments they are blanked, where the boxes around them count on their distances. */
function isTakenAway({ rigid }: IsobmffLayout, box: FileBox): boolean {
  if (!isC2paBox(box)) return false;
  return rigid === null || box.offset < rigid.start || box.offset > rigid.end;
}

/** Up to 7 bytes behind the last box are hashed as they are. More would be taken for a box, and so they get into one. */
function writeTail(writer: SpliceWriter, { tail }: IsobmffLayout): void {
  if (isBox(tail)) writer.writeWrapped(tail.offset, tail.length);
  else writer.copy(tail.offset, tail.offset + tail.length, 'flat');
}

function isBox({ length }: IsobmffLayout['tail']): boolean {
  return length >= BOX_HEADER_SIZE_BYTES;
}
