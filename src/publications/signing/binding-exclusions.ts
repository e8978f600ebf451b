import { C2PA_BOX_ID } from '#formats/isobmff/c2pa-box.ts';

const everything = { length: null, data: null, subset: null, version: null, flags: null, exact: null };

/** What `c2pa.hash.bmff.v3` leaves out: C2PA's own boxes and the two that the specification requires. */
export const bmffExclusions = [
  { ...everything, xpath: '/uuid', data: [{ offset: 8, value: [...C2PA_BOX_ID] }] },
  { ...everything, xpath: '/ftyp' },
  { ...everything, xpath: '/mfra' },
];
