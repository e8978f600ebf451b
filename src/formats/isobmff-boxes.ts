/**
 * The public face of `isobmff`: reading boxes, and the boxes and rules that C2PA adds. Publications and packaging build
 * on it; everything else in the folder serves its `FormatHandler` alone.
 */

export { BMFF_HASH_ALGORITHM, bmffHash, offsetMark } from './isobmff/bmff-hash.ts';
export {
  BOX_HEADER_SIZE_BYTES,
  Box,
  BoxFields,
  type BoxHeader,
  boxHeadersIn,
  C2PA_BOX_HEAD_BYTES,
  C2PA_BOX_ID,
  c2paUuidBox,
  c2paUuidBoxHead,
  fitsInto,
  MAX_BOX_HEADER_SIZE_BYTES,
  parseBoxHeader,
  parseC2paBox,
  printableType,
  readWholeBox,
  requireFit,
  walkTopLevelBoxes,
} from './isobmff/boxes.ts';
export { EXCLUDED_TYPES, isExcludedType, isOfItsType, MAX_EXCLUDED_BOX_BYTES } from './isobmff/excluded-boxes.ts';
export {
  decodeTimeIn,
  parseSegmentIndex,
  type SegmentIndexFields,
  type TrackDefaults,
  trackDefaultsIn,
  trackFragmentHeaderOf,
  trackRunOf,
  wholeRunOf,
} from './isobmff/fragment-boxes.ts';
export { type DefaultSizes, defaultSizesOf, type MediaRange, samplesPerChunk } from './isobmff/media-boxes.ts';
export { MAX_MERKLE_BOX_BYTES, type MerkleBox, readMerkleBox } from './isobmff/merkle-box.ts';
export { movedAuxiliary } from './isobmff/stored-offsets.ts';
export {
  type StraySamples,
  straySamplesOfFragment,
  straySamplesOfInit,
  strayTableOfPart,
} from './isobmff/stray-samples.ts';
export { isSearchedType } from './isobmff/table-places.ts';
export { editStartOf, fieldBehindTimes, handlerTypeIn } from './isobmff/track-boxes.ts';
export { parseTrack, type Track } from './isobmff/track-kinds.ts';
