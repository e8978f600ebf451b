import type { PublicationPatterns } from '#publications/publication.ts';
import type { Files } from '../support/publications/signed-publication.ts';

/** A publication of two muxed variants by ffmpeg, edited by hand as people and programs do. */
export interface PublicationVariant {
  readonly name: string;
  readonly edit: (files: Files) => Record<string, string | Uint8Array>;
  readonly patterns?: PublicationPatterns;
  /** The fragments of one rendition in the order that they have to be bound in. */
  readonly order?: readonly string[];
  /** Playlists that ffmpeg can play. */
  readonly played?: RegExp;
}

export const publicationVariants: readonly PublicationVariant[] = [
  {
    name: 'file names in another order than the playlist plays them',
    order: [3, 1, 6, 4, 2, 0].map((number) => `seg_hi_${number}.m4s`),
    edit: (files) =>
      renamed(files, (path) =>
        path.replace(/seg_(\w+)_(\d+)/, (_, variant, n) => `seg_${variant}_${(Number(n) * 5 + 3) % 7}`),
      ),
  },
  {
    name: 'the same names in several folders',
    edit: (files) =>
      renamed(files, (path) => {
        const [, name = '', variant = '', rest = ''] = /^(seg|init|index)_(hi|lo)(.*)$/.exec(path) ?? [];
        return name === '' ? path : `${variant}/${name}${rest}`;
      }),
  },
  {
    name: 'spaces and letters beyond ASCII in its names',
    edit: (files) => renamed(files, (path) => path.replace(/^(seg|init)_/, 'sé g № $1 ')),
  },
  {
    name: 'such names, percent-encoded in its playlists',
    edit: (files) => renamed(files, (path) => path.replace(/^(seg|init)_/, 'sé g № $1 '), encodeURIComponent),
    played: /(?!)/, // ffmpeg looks for files by the names that the playlist spells.
  },
  {
    name: 'init segments that end in .m4s and fragments that end in .mp4, .cmfv and .cmfa',
    patterns: { playlist: '*.m3u8', init: 'init_*.m4s', frag: 'seg_*.{mp4,cmfv,cmfa}' },
    edit: (files) =>
      renamed(files, (path) => {
        if (path.startsWith('init_')) return path.replace('.mp4', '.m4s');
        const extension = path.endsWith('0.m4s') ? 'cmfv' : path.endsWith('1.m4s') ? 'cmfa' : 'mp4';
        return path.replace(/(?<=^seg_.*\.)m4s$/, extension);
      }),
  },
  {
    name: 'a rendition that no playlist names, with numbers without padding',
    order: Array.from({ length: 12 }, (_, number) => `more/${number}.m4s`),
    edit: (files) => {
      const unlisted = Object.entries(files)
        .filter(([path]) => /^(seg|init)_lo/.test(path))
        // Twelve fragments, so that 10 comes after 9 and not after 1.
        .flatMap(([path, bytes]): [string, Uint8Array][] => {
          const [, number] = /_(\d+)\.m4s$/.exec(path) ?? [];
          if (number === undefined) return [['more/init.mp4', bytes]];
          return [0, 6].map((add) => [`more/${Number(number) + add}.m4s`, bytes]);
        });
      return { ...files, ...Object.fromEntries(unlisted) };
    },
  },
  {
    name: 'events, production times and boxes nobody knows before its fragments',
    edit: (files) =>
      Object.fromEntries(
        Object.entries(files).map(([path, bytes]) => [
          path,
          path.endsWith('.m4s') ? Buffer.concat([box('emsg', 60), box('prft', 24), box('what', 0), bytes]) : bytes,
        ]),
      ),
  },
  {
    name: 'fragments of several megabytes beside small ones',
    edit: (files) =>
      Object.fromEntries(
        Object.entries(files).map(([path, bytes]) => [
          path,
          /^seg_hi_[135]/.test(path) ? Buffer.concat([box('what', 3 * 1024 ** 2), bytes]) : bytes,
        ]),
      ),
  },
  {
    name: 'bytes after the last box of a fragment, and free space in it',
    edit: (files) =>
      Object.fromEntries(
        Object.entries(files).map(([path, bytes]) => [
          path,
          path.endsWith('.m4s') ? Buffer.concat([bytes, box('free', 12), Buffer.alloc(3)]) : bytes,
        ]),
      ),
  },
];

/** Renames files, and the references to them in playlists. */
function renamed(
  files: Files,
  rename: (path: string) => string,
  spell: (path: string) => string = (path) => path,
): Record<string, string | Uint8Array> {
  const names = new Map(Object.keys(files).map((path) => [path, rename(path)]));
  return Object.fromEntries(
    Object.entries(files).map(([path, bytes]) => {
      const target = names.get(path) as string;
      if (!path.endsWith('.m3u8')) return [target, bytes];
      const above = target.includes('/') ? `${target.slice(0, target.indexOf('/'))}/` : '';
      const text = Buffer.from(bytes)
        .toString('utf8')
        .replace(/[\w.]+\.(?:m4s|mp4|m3u8)/g, (name) => {
          const moved = names.get(name) ?? name;
          return spell(moved.startsWith(above) ? moved.slice(above.length) : moved);
        });
      return [target, text];
    }),
  );
}

/** A box of a type with so many bytes inside. */
function box(type: string, bodyBytes: number): Buffer {
  const bytes = Buffer.alloc(8 + bodyBytes);
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.write(type, 4, 'latin1');
  return bytes;
}
