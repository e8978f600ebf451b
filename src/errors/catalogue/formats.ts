import { entry, warningEntry } from '../entry.ts';

/** Returns the command that writes the sizes in a file of RIFF anew, which is WAV unless its name says otherwise. */
function rewriteSizes(name: string): string {
  const extension = /\.avi$/i.test(name) ? 'avi' : 'wav';
  return `ffmpeg -i in.${extension} -c copy out.${extension}`;
}

/** Ends the messages about files that readers find no manifest in. */
const OR_SIDECAR = 'Or sign it as it is, with params.manifest set to "sidecar".';

/** Ends the message about text, which is an error page of a server or a playlist, as a rule. */
const OF_TEXT =
  'Check that this is the path or address of the media itself; a playlist is signed with its folder, at /v2/c2pa/fragmented.';

/** Errors in the bytes of a media file. Offsets and sizes are in bytes, offsets from the file's start. */
export const formatErrors = {
  FORMAT_UNKNOWN: entry<{ name: string; startsLike: string | null; containers: string; operation: 'sign' | 'verify' }>(
    'INVALID_INPUT_TYPE',
    ({ name, startsLike, containers, operation }) =>
      `"${name}" ${startsLike === null ? 'is' : `starts like ${startsLike}, and is`} ${
        operation === 'verify'
          ? 'no file that a manifest can be read from. Verify the file as it was signed. If its manifest is in a sidecar, put that next to it, or name it in params.sidecars.'
          : `none of the containers that can carry a manifest here (${containers}). ${startsLike === 'text' ? OF_TEXT : `Convert it to one of them. ${OR_SIDECAR}`}`
      }`,
  ),

  RIFF_64_BIT: entry<{ name: string; signature: string; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, signature, sizeBytes }) =>
      `"${name}" is a 64-bit WAVE file (${signature}) of ${sizeBytes} bytes. Readers of C2PA find a manifest in RIFF alone, which ends at 4 GiB: convert it to FLAC, or to MOV with the same samples, which is signed as video: ffmpeg -i in.wav -c copy out.mov. ${OR_SIDECAR}`,
  ),
  RIFF_SIZE_UNKNOWN: entry<{ name: string; chunkId: string; offset: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, chunkId, offset, sizeBytes }) =>
      `The chunk "${chunkId}" at byte ${offset} of "${name}" has no size (${sizeBytes}), as in a file that was written to a pipe or never closed. Write its sizes first, for example with: ${rewriteSizes(name)}.`,
  ),
  RIFF_SOUND_EMPTY: entry<{ name: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, offset }) =>
      `"${name}" has no sound: its chunk "data" at byte ${offset} holds 0 bytes. Submit a file with sound. If there is sound behind that byte, write its size first, for example with: ${rewriteSizes(name)}. ${OR_SIDECAR}`,
  ),
  RIFF_CHUNK_EXCEEDS_PARENT: entry<{
    name: string;
    chunkId: string;
    offset: number;
    sizeBytes: number;
    parent: string;
    limit: number;
  }>(
    'PROCESSING_FAILED',
    ({ name, chunkId, offset, sizeBytes, parent, limit }) =>
      `The chunk "${chunkId}" at byte ${offset} of "${name}" claims ${sizeBytes} bytes, but the ${parent} ends at byte ${limit}. The file is cut short, or was written to a pipe: submit it whole, or rewrite its sizes with: ${rewriteSizes(name)}.`,
  ),
  RIFF_CHUNK_ID_INVALID: entry<{ name: string; id: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, id, offset }) =>
      `There is no chunk at byte ${offset} of "${name}", where one should start (found 0x${id}). The chunk before it has a wrong size: rewrite the file with: ffmpeg -i in.wav -c copy out.wav.`,
  ),
  RIFF_CHUNK_MISSING: entry<{ name: string; chunkId: string }>(
    'PROCESSING_FAILED',
    ({ name, chunkId }) =>
      `"${name}" has no "${chunkId}" chunk where one has to be, so that players find nothing in it. Write the file anew from its source.`,
  ),
  AVI_MEDIA_WOULD_MOVE: entry<{ name: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, offset }) =>
      `"${name}" has media at byte ${offset} that a manifest would move, and that its indexes would not find any more. Convert it to MOV or MP4, for example with: ffmpeg -i in.avi -c copy out.mov. ${OR_SIDECAR}`,
  ),
  RIFF_TOO_MANY_CHUNKS: entry<{ name: string; maxChunks: number; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, maxChunks, offset }) =>
      `"${name}" holds more than ${maxChunks} chunks (reached at byte ${offset}). Rewrite it without the ones that are not needed.`,
  ),
  RIFF_FILE_TOO_LARGE: entry<{ name: string; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, sizeBytes }) =>
      `"${name}" has ${sizeBytes} bytes, more than the sizes in a WAV file can say, so that they must be wrong. Convert it without regard to them, for example to MOV with the same samples, which is signed as video: ffmpeg -ignore_length 1 -i in.wav -c copy out.mov. ${OR_SIDECAR}`,
  ),
  RIFF_TOO_LARGE: entry<{ name: string; sizeBytes: number; maxSizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, sizeBytes, maxSizeBytes }) =>
      `With its manifest "${name}" would have a RIFF chunk of ${sizeBytes} bytes; RIFF ends at ${maxSizeBytes}. Convert it (WAV to FLAC, AVI to MOV or MP4), or split it. ${OR_SIDECAR}`,
  ),
  ID3_HEADER_INVALID: entry<{ name: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ name, offset, problem }) =>
      `The ID3v2 tag at byte ${offset} of "${name}" cannot be read: ${problem}. Rewrite the tag with a tag editor, or remove it.`,
  ),
  ID3_TAG_EXCEEDS_FILE: entry<{ name: string; offset: number; sizeBytes: number; fileSizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, sizeBytes, fileSizeBytes }) =>
      `The ID3v2 tag at byte ${offset} of "${name}" claims ${sizeBytes} bytes, but the file has ${fileSizeBytes}. The file is cut short, or the tag has a wrong size: submit it whole, or rewrite the tag.`,
  ),
  ID3_TOO_MANY_TAGS: entry<{ name: string; offset: number; maxTags: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, maxTags }) =>
      `"${name}" has more ID3v2 tags in a row than the ${maxTags} that are allowed here (reached at byte ${offset}). Merge them with a tag editor.`,
  ),
  ID3_TOO_MANY_FRAMES: entry<{ name: string; offset: number; maxFrames: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, maxFrames }) =>
      `An ID3v2 tag of "${name}" holds more than ${maxFrames} frames (reached at byte ${offset}). Remove some with a tag editor.`,
  ),
  ID3_FRAME_UNREADABLE: entry<{ name: string; frameId: string; offset: number; feature: string }>(
    'PROCESSING_FAILED',
    ({ name, frameId, offset, feature }) =>
      `The ID3v2 frame "${frameId}" at byte ${offset} of "${name}" has ${feature}, and readers of C2PA find no manifest in a tag with such a frame. Remove the frame, or save it again with a tag editor.`,
  ),
  ID3_UNSYNCHRONISED_TAG_TOO_LARGE: entry<{ name: string; offset: number; sizeBytes: number; maxSizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, sizeBytes, maxSizeBytes }) =>
      `The unsynchronised ID3v2 tag at byte ${offset} of "${name}" has ${sizeBytes} bytes; at most ${maxSizeBytes} can be rewritten. Save the tag without unsynchronisation, or as ID3v2.4.`,
  ),
  ID3_TAG_TOO_LARGE: entry<{ name: string; sizeBytes: number; maxSizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, sizeBytes, maxSizeBytes }) =>
      `With its manifest the ID3v2 tag of "${name}" would have ${sizeBytes} bytes; ID3v2 allows ${maxSizeBytes}. Remove pictures from the tag, or give a parent with a smaller manifest.`,
  ),
  ID3_FRAME_TOO_LARGE: entry<{ name: string; sizeBytes: number; maxSizeBytes: number; version: number }>(
    'PROCESSING_FAILED',
    ({ name, sizeBytes, maxSizeBytes, version }) =>
      `The manifest of "${name}" needs a frame of ${sizeBytes} bytes; its ID3v2.${version} tag allows ${maxSizeBytes}. Convert the tag to ID3v2.4 with a tag editor.`,
  ),
  ID3_SEVERAL_TAGS: entry<{ name: string; offset: number; container: string }>(
    'PROCESSING_FAILED',
    ({ name, offset, container }) =>
      `"${name}" has a second ID3v2 tag at byte ${offset}; readers of C2PA allow ${container} files only one. Merge the tags, or remove one, with a tag editor.`,
  ),
  AUDIO_STREAM_UNKNOWN: entry<{ name: string; offset: number }>(
    'INVALID_INPUT_TYPE',
    ({ name, offset }) =>
      `Behind its ID3v2 tag, from byte ${offset}, "${name}" holds neither MPEG audio (MP3) nor FLAC. Convert it to one of them.`,
  ),
  ID3_AUDIO_BEHIND_TEXT: entry<{ name: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, offset }) =>
      `From byte ${offset} on, before its first frame of MPEG audio, "${name}" begins like text, which players may read as a list of other files. Write it anew without that, for example with: ffmpeg -f mp3 -i in.mp3 -c copy out.mp3.`,
  ),
  FLAC_STREAMINFO_INVALID: entry<{ name: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ name, offset, problem }) =>
      `The FLAC stream at byte ${offset} of "${name}" does not start with a valid STREAMINFO block: ${problem}. Encode it again, for example with: flac -f in.flac.`,
  ),

  BMFF_BOX_EXCEEDS_PARENT: entry<{
    name: string;
    boxType: string;
    offset: number;
    sizeBytes: number;
    parent: string;
    parentEndOffset: number;
  }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset, sizeBytes, parent, parentEndOffset }) =>
      `The box "${boxType}" at byte ${offset} of "${name}" claims ${sizeBytes} bytes, but ${parent === 'file' ? 'the file' : `the box "${parent}" around it`} ends at byte ${parentEndOffset}. The file is cut short or damaged: submit it whole.`,
  ),
  BMFF_BOX_SIZE_INVALID: entry<{ name: string; boxType: string; offset: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset, sizeBytes }) =>
      `The box "${boxType}" at byte ${offset} of "${name}" claims ${sizeBytes} bytes, less than its own header. The file is damaged there: write it anew, for example with: ffmpeg -i in.mp4 -c copy out.mp4.`,
  ),
  BMFF_BOX_MALFORMED: entry<{ name: string; boxType: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset, problem }) =>
      `The box "${boxType}" at byte ${offset} of "${name}" cannot be read: ${problem}. The file is damaged there: write it anew, for example with: ffmpeg -i in.mp4 -c copy out.mp4.`,
  ),
  BMFF_BOX_TOO_LARGE: entry<{ name: string; boxType: string; offset: number; sizeBytes: number; maxSizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset, sizeBytes, maxSizeBytes }) =>
      `The box "${boxType}" at byte ${offset} of "${name}" has ${sizeBytes} bytes, of which at most ${maxSizeBytes} can be read into memory. Split the file.`,
  ),
  BMFF_TOO_MANY_BOXES: entry<{ name: string; offset: number; maxBoxes: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, maxBoxes }) =>
      `"${name}" holds more than ${maxBoxes} boxes in a row (reached at byte ${offset}). Split the file, or write it with longer fragments.`,
  ),
  BMFF_TOO_MANY_OFFSETS: entry<{ name: string; boxType: string; offset: number; maxOffsets: number }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset, maxOffsets }) =>
      `"${name}" stores more offsets, or tables of them, than the ${maxOffsets} that can be adjusted (reached in the box "${boxType}" at byte ${offset}). Split the file.`,
  ),
  BMFF_MOVIE_MISSING: entry<{ name: string; isFragment: boolean; isPicture: boolean }>(
    'PROCESSING_FAILED',
    ({ name, isFragment, isPicture }) =>
      isPicture
        ? `"${name}" is a still picture (there is a "meta" box and no "moov" box), which cannot carry a manifest here. Sign it as it is, with params.manifest set to "sidecar".`
        : isFragment
          ? `"${name}" is a fragment without its init segment (there is no "moov" box). Submit the folder that it belongs to as a publication.`
          : `"${name}" has no "moov" box, so nothing can play it: its recording was probably cut off before it was closed. Repair the file first.`,
  ),
  BMFF_MOVIE_COMPRESSED: entry<{ name: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, offset }) =>
      `The "moov" box at byte ${offset} of "${name}" is compressed ("cmov"), so that its tables cannot be adjusted. Write the file anew, for example with: ffmpeg -i in.mov -c copy out.mov.`,
  ),
  BMFF_MEDIA_MISSING: entry<{ name: string }>(
    'PROCESSING_FAILED',
    ({ name }) =>
      `"${name}" describes a movie but holds no media (no "mdat" and no "moof" box). If it is an init segment, submit the folder that it belongs to as a publication; if its media is in other files (a reference movie), make it self-contained; else it is cut short.`,
  ),
  BMFF_MEDIA_UNBOUND: entry<{ name: string; boxType: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset }) =>
      `Players find media of "${name}", or how to decrypt it, in the box "${boxType}" at byte ${offset}, which no signature covers. Write the file anew, for example with: ffmpeg -i in.mp4 -c copy out.mp4.`,
  ),
  BMFF_OFFSET_OVERFLOW: entry<{ name: string; boxType: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, boxType, offset }) =>
      `The box "${boxType}" at byte ${offset} of "${name}" cannot store the offsets that its media gets when a manifest is put in. Write the file anew with 64-bit offsets.`,
  ),
  BMFF_DATA_REFERENCES_MIXED: entry<{ name: string; offset: number }>(
    'PROCESSING_FAILED',
    ({ name, offset }) =>
      `A track of "${name}" has its media partly in this file and partly in others (data references at byte ${offset}). Make the movie self-contained.`,
  ),
};

/** Warnings about a media file. */
export const formatWarnings = {
  MEDIA_SIZE_CORRECTED: warningEntry<{ name: string; offset: number; statedBytes: number; sizeBytes: number }>(
    ({ name, offset, statedBytes, sizeBytes }) =>
      `The last "mdat" box of "${name}", at byte ${offset}, claims ${statedBytes} bytes, but the file has ${sizeBytes} of them. The output has the size corrected; its last sample may lack its end.`,
  ),
  MEDIA_IN_OTHER_FILES: warningEntry<{ name: string; by: string }>(
    ({ name, by }) =>
      `"${name}" refers to media in other files (by ${by}). These files are not signed, and a change in them is not found. Make the movie self-contained to sign its media.`,
  ),
};
