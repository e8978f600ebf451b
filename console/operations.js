/**
 * Operations of the API, as the pages need them. The output is a media file, a publication (a folder), or a report (a JSON file).
 * @typedef {{ text: string, path: string, isOfFolders: boolean, output: 'media' | 'publication' | 'report' }} Operation
 * @type {Readonly<Record<import('../src/contract/job.ts').OperationName, Operation>>}
 */
export const OPERATIONS = {
  'c2pa-video': { text: 'Sign video', path: 'v2/c2pa/video', isOfFolders: false, output: 'media' },
  'c2pa-audio': { text: 'Sign audio', path: 'v2/c2pa/audio', isOfFolders: false, output: 'media' },
  'c2pa-fragmented': {
    text: 'Sign a publication',
    path: 'v2/c2pa/fragmented',
    isOfFolders: true,
    output: 'publication',
  },
  'c2pa-package': { text: 'Package and sign', path: 'v2/c2pa/package', isOfFolders: true, output: 'publication' },
  package: { text: 'Package', path: 'v2/package', isOfFolders: true, output: 'publication' },
  verify: { text: 'Verify', path: 'v2/verify', isOfFolders: false, output: 'report' },
};
