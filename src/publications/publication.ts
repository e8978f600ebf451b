import type { Warning } from '#errors/warning.ts';
import type { InitLayout } from './fragments/init-layout.ts';
import type { Rendition } from './media-part.ts';
import type { PlaylistDocument } from './playlists/playlist-document.ts';
import type { PublicationFolder } from './publication-folder.ts';

export type { HlsMedia } from './playlists/playlist-document.ts';

/** A streaming publication: the parts of a folder that are to be signed, rewritten, and copied unchanged. */
export interface Publication {
  /** At least one. No file or byte range belongs to two of them. */
  readonly renditions: readonly Rendition[];
  readonly playlists: readonly PlaylistDocument[];
  /** Files that are neither media of a rendition nor playlists: copied unchanged. */
  readonly otherPaths: readonly string[];
  /** For the result entry's `warnings`. */
  readonly warnings: readonly Warning[];
}

/** Globs of the request that find the parts of a publication, matched against paths relative to the folder. */
export interface PublicationPatterns {
  readonly playlist: string;
  readonly init: string;
  readonly frag: string;
}

/** A publication that was read, with the layouts of its init segments in the order of its renditions. */
export interface ReadPublication {
  readonly folder: PublicationFolder;
  readonly publication: Publication;
  readonly inits: readonly InitLayout[];
}

/** The parts of a publication that carry or are bound by a manifest. */
export interface PublicationSource extends Omit<ReadPublication, 'publication'> {
  readonly publication: Pick<Publication, 'renditions'>;
}
