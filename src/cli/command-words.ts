import type { JobResultEntry } from '#contract/job.ts';

/** Words of the API in messages, with those of a command for the same. */
const WORDS: readonly (readonly [RegExp, string])[] = [
  [/Set params\.manifest to "sidecar"/g, 'Use attestream sign --sidecar'],
  [/Leave out params\.manifest/g, 'Leave out --sidecar'],
  [/params\.manifest set to "sidecar"/g, 'attestream sign --sidecar'],
  [/; package-and-sign does both/g, '; attestream package --sign does both'],
  [/\bPackage-and-sign re-segments/g, 'attestream package --sign re-segments'],
  [/, at \/v2\/c2pa\/fragmented/g, ''],
  [/Choose another output\.prefix or output\.name/g, 'Name another folder with --output'],
  [/choose another output\.prefix or output\.name/g, 'name another output'],
  [/, or let the operator move output_sinks\.local\.base_dir/g, ''],
  [/The operator frees disk space/g, 'Free disk space'],
  [/The operator of the service may name another authority/g, 'Name another authority with --tsa'],
  [/Another input of this request/g, 'Another input'],
  [/submit them with different outputs/g, 'sign them with different outputs'],
  [/\b[Tt]he service has no permission/g, 'attestream has no permission'],
  [/It is an address: give it as "url".*$/g, 'It is an address, and a path on this host is needed.'],
  [/, or name it in params\.sidecars/g, ''],
  [/params\.digital_source_type/g, '--digital-source-type'],
  [/params\.(assertions|actions|parent)/g, '--$1'],
  [/The audio endpoint signs .*?: (?:convert it, or )?use the video endpoint/g, 'Its name is that of audio: rename it'],
  [/, and that it is the same on the host of the service/g, ''],
  // Commands have no option for any other field.
  [/; [^;.]*params\.[a-z_]+[^;.]*/g, ''],
  [/Choose the files of one film with params\.include, .*?, or submit/g, 'Submit'],
  [/ Set params\.[a-z_]+[^.]*\./g, ''],
];

/** Returns a result whose messages are in the words of a command. */
export function entryInCommandWords(entry: JobResultEntry): JobResultEntry {
  const { error, warnings } = entry;
  return {
    ...entry,
    ...(error !== undefined && { error: inCommandWords(error) }),
    ...(warnings !== undefined && { warnings: warnings.map(inCommandWords) }),
  };
}

/** Returns a message with the options of commands in place of the fields of requests. */
export function inCommandWords(message: string): string {
  return WORDS.reduce((text, [pattern, words]) => text.replace(pattern, words), message);
}
