/** A kind of RIFF file that can carry a manifest. */
export interface RiffForm {
  /** The four characters behind the RIFF size. */
  readonly type: string;
  readonly mediaType: string;
  readonly extensions: readonly [string, ...string[]];
  readonly hasVideo: boolean;
  /** Without these there is nothing to play. */
  readonly requiredChunkIds: readonly string[];
}

export const WAVE: RiffForm = {
  type: 'WAVE',
  mediaType: 'audio/wav',
  extensions: ['wav', 'wave'],
  hasVideo: false,
  requiredChunkIds: ['fmt ', 'data'],
};

/** Its lists hold the headers and the media; indexes lead into the media by offset, so that it must not move. */
export const AVI: RiffForm = {
  type: 'AVI ',
  mediaType: 'video/x-msvideo',
  extensions: ['avi'],
  hasVideo: true,
  requiredChunkIds: ['LIST'],
};

const FORMS: readonly RiffForm[] = [WAVE, AVI];

export function riffFormOf(type: string): RiffForm | undefined {
  return FORMS.find((form) => form.type === type);
}
