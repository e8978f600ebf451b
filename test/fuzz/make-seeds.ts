import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signWav, smallWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { folderAt } from '../support/publications/make-folder.ts';
import { signFolder } from '../support/publications/sign-folder.ts';
import { runTool } from '../support/run-tool.ts';
import { PICTURES, signPicture } from '../support/verification/signed-pictures.ts';

const FILM =
  '-v error -y -f lavfi -i testsrc2=s=64x48:r=10:d=1.2 -f lavfi -i sine=r=16000:d=1.2 -c:v libx264 -preset ultrafast -g 4 -bf 1 -pix_fmt yuv420p -c:a aac -b:a 16k -ac 1 film.mp4';

/** Arguments of ffmpeg behind the input, by name, for each target that reads media. */
const MEDIA: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  movie: {
    'last.mp4': '-c copy',
    'first.mp4': '-c copy -movflags +faststart -metadata title=Title',
    'fragments.mp4': '-c copy -movflags +frag_keyframe+empty_moov+default_base_moof',
    'base-offsets.mp4': '-c copy -movflags +frag_keyframe+empty_moov',
    'indexed.mp4': '-c copy -movflags +frag_keyframe+empty_moov+default_base_moof+global_sidx',
    'pcm.mov': '-c:v copy -c:a pcm_s16le',
    'text.mp4': '-i text.srt -map 0 -map 1 -c copy -c:s mov_text',
  },
  matroska: {
    'film.mkv': '-c copy',
    'text.mkv': '-i text.srt -map 0 -map 1 -c copy -c:s srt',
    'live.mkv': '-c copy -f matroska -live 1',
    'film.webm': '-c:v libvpx -deadline realtime -cpu-used 8 -b:v 50k -c:a libopus -b:a 16k',
    'vtt.webm': '-i text.srt -map 0:a -map 1 -c:a libopus -b:a 16k -c:s webvtt',
  },
  stream: {
    'film.ts': '-c copy -f mpegts',
    'sound.ogg': '-vn -c:a libopus -b:a 16k',
    'vorbis.ogg': '-vn -c:a libvorbis -ac 2',
    'sound.flac': '-vn -t 0.3',
    'sound.wav': '-vn -t 0.3',
    'sound.mp3': '-vn -c:a libmp3lame -b:a 16k',
    'sound.aac': '-vn -c copy -f adts',
  },
  audio: {
    'tagged.mp3': '-vn -c:a libmp3lame -b:a 16k -id3v2_version 3 -metadata title=Song -metadata artist=Somebody',
    'v24.mp3': '-vn -c:a libmp3lame -b:a 16k -id3v2_version 4 -write_id3v1 1 -metadata title=Song',
    'plain.mp3': '-vn -c:a libmp3lame -b:a 16k -id3v2_version 0',
    'info.wav': '-vn -t 0.2 -metadata title=Song',
    'long.wav': '-vn -t 0.2 -rf64 always',
    'sound.flac': '-vn -t 0.3 -metadata title=Song',
    'film.avi': '-c:v mpeg4 -c:a libmp3lame -b:a 16k',
  },
};

const HLS =
  '-map 0:v -map 0:a -c copy -f dash -seg_duration 0.4 -use_timeline 1 -use_template 1 -hls_playlist 1 manifest.mpd';

/** Makes the seeds of all targets in a folder: a folder of files for each kind of media, and one of signed parts. */
export async function makeSeeds(folder: string): Promise<void> {
  writeFileSync(join(folder, 'text.srt'), '1\n00:00:00,200 --> 00:00:01,000\nGood <i>evening</i>\n');
  runTool(folder, 'ffmpeg', FILM.split(' '));
  for (const [kind, files] of Object.entries(MEDIA)) {
    mkdirSync(join(folder, kind));
    for (const [name, rest] of Object.entries(files)) {
      runTool(folder, 'ffmpeg', ['-v', 'error', '-y', '-i', 'film.mp4', ...rest.split(' '), join(kind, name)]);
    }
  }
  mkdirSync(join(folder, 'publication'));
  runTool(join(folder, 'publication'), 'ffmpeg', ['-v', 'error', '-i', '../film.mp4', ...HLS.split(' ')]);
  await makeSigned(folder);
  mkdirSync(join(folder, 'picture'));
  for (const name of Object.keys(PICTURES)) {
    writeFileSync(join(folder, 'picture', name), await signPicture(name, folder));
  }
}

/** A signed publication, and a signed sound with a manifest of its own. */
async function makeSigned(folder: string): Promise<void> {
  const patterns = { playlist: '*.mpd', init: 'init*', frag: 'chunk*' };
  const { output } = await signFolder(folderAt(join(folder, 'publication')), patterns, 2_000);
  mkdirSync(join(folder, 'signed'));
  for (const [name, content] of Object.entries(output)) writeFileSync(join(folder, 'signed', name), content);
  const { bytes, manifest } = await signWav(testAuthor(), {}, smallWav(400));
  mkdirSync(join(folder, 'store'));
  writeFileSync(join(folder, 'store', 'signed.wav'), bytes);
  writeFileSync(join(folder, 'store', 'store.c2pa'), manifest);
}

/** The files of a folder of seeds, in the order of their names. */
export function seedFiles(folder: string, kind: string, pattern = /./): Buffer[] {
  return readdirSync(join(folder, kind))
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => readFileSync(join(folder, kind, name)));
}
