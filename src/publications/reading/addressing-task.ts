import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { FolderIndex } from './folder-index.ts';
import type { MpdRepresentation } from './mpd-document.ts';
import type { MpdValues } from './mpd-values.ts';
import type { XmlElement } from './xml-element.ts';

/** A representation whose segments are to be written out. */
export interface AddressingTask {
  readonly lineage: MpdRepresentation['lineage'];
  readonly values: MpdValues;
  readonly folder: SourceFolder;
  readonly index: FolderIndex;
  /** The base of references inside the adaptation set. */
  readonly base: URL;
  /** Undefined where the MPD does not say how long the period is. */
  readonly periodSeconds: number | undefined;
}

export type AddressedSegments = Pick<MpdRepresentation, 'addressing' | 'init' | 'segments' | 'path' | 'index'>;

/** The elements of one addressing scheme that a representation inherits, outermost first; the innermost decides. */
export type AddressingElements = readonly XmlElement[];

/** Refuses addressing that describes chunks inside segments rather than segments. */
export function refuseChunks(task: AddressingTask, element: XmlElement): never {
  throw new AppError('PLAYLIST_UNSUPPORTED', {
    ...task.values.placeOf(element),
    feature: 'A low-latency manifest that addresses parts of segments',
    remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
  });
}
