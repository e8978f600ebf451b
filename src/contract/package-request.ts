import { z } from 'zod';
import { commonRequestFields, glob, isLanguage, path } from './request.ts';

/** The longest name that a request can give a playlist, a rendition or a label, in UTF-16 code units. */
const MAX_NAME_LENGTH = 100;

/** A file name of a playlist: one path segment of plain letters, so that it reads the same in every address. */
const playlistName = (extension: 'm3u8' | 'mpd') =>
  z
    .string()
    .max(MAX_NAME_LENGTH)
    .regex(
      new RegExp(`^[A-Za-z0-9_-][A-Za-z0-9._-]*\\.${extension}$`),
      `must be a file name of letters, digits, ".", "_" and "-" that ends in .${extension}`,
    );

/** A language tag (BCP 47) or a code of ISO 639-2, such as `en`, `pt-BR` or `deu`. */
const languageTag = z
  .string()
  .max(MAX_NAME_LENGTH)
  .refine(
    (value) => /^[a-z]{2,3}(?:-|$)/i.test(value) && isLanguage(value),
    'must be a language tag such as en, de or pt-BR',
  );

export const TRACK_ROLES = ['main', 'alternate', 'commentary', 'dub', 'description', 'caption', 'subtitle'] as const;
export type TrackRole = (typeof TRACK_ROLES)[number];

const packageTrack = z
  .strictObject({
    file: path.describe(
      'The path of a file, relative to the input folder; in a folder that is a publication already, the path of a media playlist.',
    ),
    stream: z
      .int()
      .min(0)
      .max(1000)
      .optional()
      .describe('Which of the streams of the file, counted from zero; all of them where it is left out.'),
    language: languageTag.optional().describe('Its language, whatever the file says; `und` where nobody knows.'),
    label: z
      .string()
      .min(1)
      .max(MAX_NAME_LENGTH)
      .regex(/^(?:(?!\{\$)[^\p{Cc}",])*$/u, 'must not hold commas, quotation marks, control characters or "{$"')
      .optional()
      .describe('What players call it in their menus; the name of its language where it is left out.'),
    role: z.enum(TRACK_ROLES).optional().describe('What it is for, as DASH names it; HLS gets what it has for it.'),
    name: z
      .string()
      .max(MAX_NAME_LENGTH)
      .regex(/^[A-Za-z0-9_-][A-Za-z0-9._-]*$/, 'must be made of letters, digits, ".", "_" and "-"')
      .optional()
      .describe('The name of its rendition: the folder that its segments lie in.'),
  })
  .meta({
    id: 'PackageTrack',
    description: 'What the request knows of a stream better than its file does.',
    examples: [{ file: 'film.mp4', stream: 1, language: 'de', label: 'Deutsch', role: 'main', name: 'de_stereo' }],
  });
export type PackageTrack = z.infer<typeof packageTrack>;

/** The fields of `params` that all packaging operations share. */
export const packagingParamsFields = {
  include: z
    .array(glob)
    .min(1)
    .max(100)
    .optional()
    .describe(
      'Globs on paths relative to the input folder, such as `trailer*.mp4`: what none of them matches is treated as if it were not there. Without a slash one matches in every subfolder. A folder may so hold several films, each chosen by a request with an `output.name` of its own.',
    ),
  segment_duration: z
    .number()
    .min(1)
    .max(60)
    .optional()
    .describe('How long a segment is meant to be, in seconds, 4 by default. Video is cut at its key frames.'),
  formats: z
    .array(z.enum(['hls', 'dash']))
    .min(1)
    .optional()
    .describe('Which playlists are written; both by default.'),
  hls_name: playlistName('m3u8').optional().describe('The multivariant playlist, `master.m3u8` by default.'),
  dash_name: playlistName('mpd').optional().describe('The DASH manifest, `manifest.mpd` by default.'),
  default_language: languageTag
    .optional()
    .describe(
      'The language that players choose where the viewer has not. One audio track is the default: in this language, else of a file that states no language, else the first. A language that no track is known to have is a warning.',
    ),
  tracks: z
    .array(packageTrack)
    .max(1000)
    .optional()
    .describe(
      'What the files do not say of themselves, or say wrongly; at most once for each stream, and for each file.',
    ),
  iframe_playlists: z.boolean().optional().describe('Adds I-frame playlists to HLS, for pictures while seeking.'),
  existing: z
    .enum(['auto', 'copy', 'repackage'])
    .optional()
    .describe(
      'What happens to a folder that is a publication already: `copy` carries it through as it is, `repackage` makes its segments anew without encoding, `auto` (the default) carries it through where its segments are CMAF.',
    ),
  strict: z
    .boolean()
    .optional()
    .describe(
      'Fails an input, before anything of it is published, where there would be a warning of packaging or of signing. A folder that is a publication already is such a warning, unless `existing` says what is to be done with it.',
    ),
};

export const packageParams = z.strictObject(packagingParamsFields).meta({
  id: 'PackageParams',
  description: 'How the publication is made. Nothing is required.',
  examples: [
    {
      segment_duration: 6,
      formats: ['hls', 'dash'],
      default_language: 'en',
      tracks: [{ file: 'commentary.m4a', language: 'en', label: 'Commentary', role: 'commentary' }],
    },
  ],
});
export type PackageParams = z.infer<typeof packageParams>;

export const packageRequest = z.strictObject({ ...commonRequestFields, params: packageParams.optional() }).meta({
  id: 'PackageRequest',
  description:
    'Packages folders of media, each into one publication: HLS and DASH over the same CMAF segments. Nothing is signed. Files are refused.',
  examples: [
    {
      inputs: [{ type: 'local_folder_path', path: '/media/films/evening-news' }],
      output: { type: 'local', prefix: 'newsroom' },
      params: { segment_duration: 6, default_language: 'en' },
    },
  ],
});
export type PackageRequest = z.infer<typeof packageRequest>;
