import { AppError } from '#errors/app-error.ts';
import { childOf, childrenOf, type XmlElement } from '../reading/xml-element.ts';
import type { RepresentationRewrite } from './representation-rewrite.ts';
import type { TextEdit } from './text-edits.ts';
import { editAttributes, removeElement } from './xml-edits.ts';

/** A SegmentList of byte ranges becomes one of files; durations and all else stay as they are. */
export function editSegmentList({
  document,
  representation,
  init,
  fragments,
  referenceTo,
}: RepresentationRewrite): TextEdit[] {
  const { text, path } = document;
  const element = representation.lineage[3];
  const list = childOf(element, 'SegmentList');
  const initialization = list === undefined ? undefined : childOf(list, 'Initialization');
  const urls = list === undefined ? [] : childrenOf(list, 'SegmentURL');
  if (list === undefined || initialization === undefined || urls.length !== fragments.length) {
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      playlist: path,
      line: representation.line,
      feature: 'A SegmentList of byte ranges that a Representation does not hold itself',
      remedy: 'Write the list into each Representation.',
    });
  }
  return [
    ...childrenOf(element, 'BaseURL').map((baseUrl) => removeElement(text, baseUrl)),
    ...childrenOf(list, 'RepresentationIndex').map((index) => removeElement(text, index)),
    ...editAttributes(text, initialization, { sourceURL: referenceTo(init.path), range: null }),
    ...urls.flatMap((url: XmlElement, position) =>
      editAttributes(text, url, {
        media: referenceTo(fragments[position]?.path ?? ''),
        mediaRange: null,
        indexRange: null,
      }),
    ),
  ];
}
