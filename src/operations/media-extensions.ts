/** What the audio operation signs, by the extension that names and bytes have: lower case, without dot. */
export const AUDIO_EXTENSIONS: ReadonlySet<string> = new Set(['mp3', 'wav', 'flac', 'm4a', 'mp4', 'm4v']);

/** Signable, and never video. */
export const AUDIO_ONLY_EXTENSIONS: ReadonlySet<string> = new Set(['mp3', 'wav', 'flac']);

/** Signable, and never taken by the audio operation. */
export const VIDEO_EXTENSIONS: ReadonlySet<string> = new Set(['mov', 'qt', '3gp', '3g2', 'f4v', 'mj2', 'avi', 'dv']);

/** Media whose container cannot carry a manifest. */
export const UNSIGNABLE_EXTENSIONS: ReadonlySet<string> = new Set(
  [
    'webm mkv mka ts mts m2ts m2t mpg mpeg mpe m1v m2v mp2 mpa vob ogg oga ogv ogm opus spx flv wmv wma asf rm rmvb ra',
    'mxf aac ac3 eac3 ec3 dts thd aif aiff aifc au snd amr awb ape wv tta tak mpc caf dsf dff w64 rf64 bw64 mid midi',
  ].flatMap((line) => line.split(' ')),
);

/** Whether a file with this extension can be signed, if it is what its name says. */
export function isSignableExtension(extension: string): boolean {
  return AUDIO_EXTENSIONS.has(extension) || VIDEO_EXTENSIONS.has(extension);
}
