import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from '../support/run-tool.ts';
import { makeEditedFiles } from './edited-files.ts';
import { makeByOtherMuxers } from './other-muxers.ts';

/** Arguments for ffmpeg after its inputs: how `film.mp4` (H.264 with B-frames and AAC) becomes this file. */
const FROM_FILM: Readonly<Record<string, string>> = {
  'moov-last.mp4': '-c copy',
  'moov-first.mp4': '-c copy -movflags +faststart',
  'no-edit-list.mp4': '-c copy -use_editlist 0',
  'negative-composition-offsets.mp4': '-c copy -movflags +negative_cts_offsets',
  'hint-tracks.mp4': '-c copy -movflags +rtphint',
  'two-sound-tracks.mp4': '-map 0:v -map 0:a -map 0:a -c copy',
  'sound-only.mp4': '-map 0:a -c copy',
  'video-only.m4v': '-map 0:v -c copy',
  'metadata-keys.mp4': '-c copy -metadata title=Title -metadata comment=Comment -movflags +use_metadata_tags',
  'reserved-moov.mp4': '-c copy -moov_size 20000',
  'fragmented-by-key-frame.mp4': '-c copy -movflags +frag_keyframe+empty_moov',
  'fragmented-default-base.mp4': '-c copy -movflags +frag_keyframe+empty_moov+default_base_moof',
  'fragmented-every-frame.mp4': '-c copy -movflags +frag_every_frame+empty_moov',
  'fragmented-separate-moof.mp4': '-c copy -movflags +frag_keyframe+empty_moov+separate_moof',
  'fragmented-omitted-base.mp4': '-c copy -movflags +frag_keyframe+empty_moov+omit_tfhd_offset',
  'fragmented-first-in-moov.mp4': '-c copy -movflags +frag_keyframe',
  'fragmented-no-trailer.mp4': '-c copy -movflags +frag_keyframe+empty_moov+skip_trailer',
  'fragmented-global-index.mp4': '-c copy -movflags +frag_keyframe+empty_moov+default_base_moof+global_sidx',
  'fragmented-dash.mp4': '-map 0:v -c copy -movflags +dash+frag_keyframe',
  'fragmented-cmaf.mp4': '-map 0:v -c copy -movflags +cmaf+frag_keyframe+empty_moov',
  'hybrid-fragmented.mp4': '-c copy -movflags +frag_keyframe+delay_moov',
  'encrypted.mp4':
    '-c copy -encryption_scheme cenc-aes-ctr -encryption_key 00112233445566778899aabbccddeeff -encryption_kid 00112233445566778899aabbccddeeff',
  'quicktime.mov': '-c copy',
  'quicktime-first.mov': '-c copy -movflags +faststart',
  'time-code.mov': '-map 0:v -c copy -timecode 01:00:00:00',
  'uncompressed-sound.mov': '-c:v copy -c:a pcm_s16le',
  'prores.mov': '-c:v prores_ks -profile:v 0 -an',
  'motion-jpeg.mov': '-c:v mjpeg -an',
  'hevc.mp4': '-c:v libx265 -x265-params log-level=error -tag:v hvc1 -c:a copy',
  'mpeg-4-part-2.mp4': '-c:v mpeg4 -c:a copy',
  'vp9-and-opus.mp4': '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -c:a libopus',
  'phone.3gp': '-s 176x144 -c:v h263 -an',
  'phone.3g2': '-s 176x144 -c:v mpeg4 -c:a copy',
  'aac.m4a': '-map 0:a -c copy -metadata title=Song',
  'aac-fragmented.m4a': '-map 0:a -c copy -movflags +frag_keyframe+empty_moov',
  'alac.m4a': '-map 0:a -c:a alac',
  'subtitles.mp4': '-i subtitles.srt -map 0:v -map 0:a -map 1 -c copy -c:s mov_text',
  'chapters.mp4': '-i chapters.txt -map 0 -map_metadata 1 -c copy',
  'cover.m4a': '-i cover.png -map 0:a -map 1 -c copy -disposition:v:0 attached_pic',
  'cover.mp4': '-i cover.png -map 0 -map 1 -c copy -disposition:v:1 attached_pic',
};

/** The same from `tone.wav`. */
const FROM_TONE: Readonly<Record<string, string>> = {
  'id3v23.mp3': '-c:a libmp3lame -id3v2_version 3 -metadata title=Song -metadata artist=Somebody',
  'id3v24.mp3': '-c:a libmp3lame -id3v2_version 4 -metadata title=Song',
  'id3v23-picture.mp3': '-i cover.png -map 0 -map 1 -c:v copy -c:a libmp3lame -id3v2_version 3',
  'id3v24-picture.mp3': '-i cover.png -map 0 -map 1 -c:v copy -c:a libmp3lame -id3v2_version 4',
  'no-id3.mp3': '-c:a libmp3lame -id3v2_version 0 -write_id3v1 0',
  'id3v1-only.mp3': '-c:a libmp3lame -id3v2_version 0 -write_id3v1 1 -metadata title=Song',
  'both-id3.mp3': '-c:a libmp3lame -write_id3v1 1 -metadata title=Song',
  'no-xing.mp3': '-c:a libmp3lame -write_xing 0 -id3v2_version 0',
  'variable-rate.mp3': '-c:a libmp3lame -q:a 4',
  'mpeg-2.mp3': '-c:a libmp3lame -ar 22050 -b:a 32k',
  'mpeg-2.5.mp3': '-c:a libmp3lame -ar 8000 -b:a 16k',
  'list-info.wav': '-metadata title=Song -metadata artist=Somebody',
  'broadcast.wav': '-write_bext 1 -metadata description=Interview -metadata originator=Desk',
  'odd-data.wav': '-ac 1 -c:a pcm_u8 -af atrim=end_sample=4801',
  '64-bit.wav': '-rf64 always -write_bext 1 -metadata description=Interview',
  '24-bit.wav': '-c:a pcm_s24le',
  'float.wav': '-c:a pcm_f32le',
  'six-channels.wav': '-ac 6',
  'a-law.wav': '-c:a pcm_alaw',
  'ima-adpcm.wav': '-c:a adpcm_ima_wav',
  'ms-adpcm.wav': '-c:a adpcm_ms',
  'mp3-inside.wav': '-c:a libmp3lame',
  'by-ffmpeg.flac': '-c:a flac -metadata title=Song',
  '24-bit.flac': '-c:a flac -sample_fmt s32 -bits_per_raw_sample 24',
};

/** Makes a broad corpus of short files and returns the folder that holds them and nothing else. */
export async function makeCorpus(folder: string): Promise<string> {
  const corpus = join(folder, 'corpus');
  mkdirSync(corpus, { recursive: true });
  makeOriginals(folder);
  for (const [name, rest] of Object.entries(FROM_FILM)) ffmpeg(folder, 'film.mp4', rest, name);
  for (const [name, rest] of Object.entries(FROM_TONE)) ffmpeg(folder, 'tone.wav', rest, name);
  await makeByOtherMuxers(folder, corpus);
  makeEditedFiles(corpus);
  return corpus;
}

/** Makes the files that the corpus is made from. */
function makeOriginals(folder: string): void {
  runTool(folder, 'ffmpeg', [
    ...'-v error -y -f lavfi -i testsrc2=s=160x120:r=25:d=2 -f lavfi -i sine=r=44100:d=2'.split(' '),
    ...'-c:v libx264 -preset veryfast -g 25 -bf 2 -pix_fmt yuv420p -c:a aac -ac 2 film.mp4'.split(' '),
  ]);
  runTool(folder, 'ffmpeg', '-v error -y -f lavfi -i sine=r=44100:d=2 -ac 2 -fflags +bitexact tone.wav'.split(' '));
  runTool(folder, 'ffmpeg', '-v error -y -f lavfi -i testsrc2=s=64x64 -frames:v 1 cover.png'.split(' '));
  writeFileSync(join(folder, 'subtitles.srt'), '1\n00:00:00,200 --> 00:00:01,000\nGood evening.\n');
  const chapters = [0, 1].map(
    (second) => `[CHAPTER]\nTIMEBASE=1/1\nSTART=${second}\nEND=${second + 1}\ntitle=Part ${second}\n`,
  );
  writeFileSync(join(folder, 'chapters.txt'), `;FFMETADATA1\n${chapters.join('')}`);
}

function ffmpeg(folder: string, input: string, rest: string, name: string): void {
  runTool(folder, 'ffmpeg', ['-v', 'error', '-y', '-i', input, ...rest.split(' '), join('corpus', name)]);
}
