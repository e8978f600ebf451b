/** Words of the API in messages, with those of a command for the same. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/Set params\.manifest to "sidecar"/g, 'Use --sidecar'],
  [/params\.manifest set to "sidecar"/g, '--sidecar'],
  [/, at \/v2\/c2pa\/fragmented/g, ''],
  [/Choose another output\.prefix or output\.name/g, 'Name another folder with --output'],
  [/params\.digital_source_type/g, '--digital-source-type'],
  [/params\.(assertions|actions|parent)/g, '--$1'],
  [/The audio endpoint signs .*?: (?:convert it, or )?use the video endpoint/g, 'Its name is that of audio: rename it'],
  [/, and that it is the same on the host of the service/g, ''],
  // Commands have no option for any other field.
  [/; [^;.]*params\.[a-z_]+[^;.]*/g, ''],
];

/** Returns a message with the options of commands in place of the fields of requests. */
export function inCommandWords(message: string): string {
  return WORDS.reduce((text, [pattern, words]) => text.replace(pattern, words), message);
}
