import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import {
  ALL_FORMATS,
  CmafOutputFormat,
  Conversion,
  FilePathSource,
  FilePathTarget,
  HlsOutputFormat,
  Input,
  Output,
  PathedTarget,
} from 'mediabunny';
import { makeMedia } from '../media/make-media.ts';

const SECONDS = 6;

/** A short film with sound, a key frame every second: `film.mp4` in the folder. */
export function makeFilm(folder: string): string {
  const film = join(folder, 'film.mp4');
  ffmpeg(
    folder,
    ['-f', 'lavfi', '-i', `testsrc2=s=320x180:r=24:d=${SECONDS}`, '-f', 'lavfi', '-i', `sine=r=48000:d=${SECONDS}`],
    '-c:v libx264 -preset ultrafast -g 24 -keyint_min 24 -sc_threshold 0 -pix_fmt yuv420p -c:a aac -ac 2 -movflags +faststart film.mp4',
  );
  return film;
}

export function ffmpeg(folder: string, inputs: readonly string[], rest: string): void {
  makeMedia(folder, [...inputs, ...rest.split(' ')]);
}

/** HLS in fragmented MP4 by ffmpeg: two variants, muxed audio and video, in one folder, numbers without padding. */
export function makeFfmpegHls(film: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const variants = ['-var_stream_map', 'v:0,a:0,name:hi v:1,a:1,name:lo'];
  ffmpeg(
    folder,
    ['-i', film, '-map', '0:v', '-map', '0:a', '-map', '0:v', '-map', '0:a', ...variants],
    '-c copy -f hls -hls_time 1 -hls_list_size 0 -hls_segment_type fmp4 -hls_flags independent_segments ' +
      '-master_pl_name master.m3u8 -hls_fmp4_init_filename init_%v.mp4 -hls_segment_filename seg_%v_%d.m4s index_%v.m3u8',
  );
  return folder;
}

/** HLS with one file per rendition and EXT-X-BYTERANGE, by ffmpeg. */
export function makeFfmpegByteRanges(film: string, folder: string): string {
  mkdirSync(folder, { recursive: true });
  ffmpeg(
    folder,
    ['-i', film],
    '-map 0:v -map 0:a -c copy -f hls -hls_time 1 -hls_list_size 0 -hls_segment_type fmp4 -hls_flags single_file -master_pl_name master.m3u8 -hls_segment_filename media.mp4 index.m3u8',
  );
  return folder;
}

/** DASH and HLS over the same segments, by ffmpeg: both init patterns and names of its own. */
export function makeFfmpegDash(
  film: string,
  folder: string,
  options = '-seg_duration 1 -use_timeline 1 -use_template 1 -hls_playlist 1',
): string {
  mkdirSync(folder, { recursive: true });
  ffmpeg(folder, ['-i', film], `-map 0:v -map 0:a -c copy -f dash ${options} manifest.mpd`);
  return folder;
}

/** HLS and DASH by shaka-packager: a folder per rendition with the same names in each. */
export function makeShaka(film: string, folder: string, options: readonly string[] = []): string {
  const stream = (kind: string, rest: string): string =>
    `in=${film},stream=${kind},init_segment=${kind}/init.mp4,segment_template=${kind}/$Number$.m4s,playlist_name=${kind}/index.m3u8${rest}`;
  return runShaka(folder, [
    stream('video', ',iframe_playlist_name=video/iframes.m3u8'),
    stream('audio', ',hls_group_id=audio,hls_name=English'),
    ...options,
  ]);
}

/** HLS and DASH by shaka-packager with one file per rendition: EXT-X-BYTERANGE, and SegmentBase with sidx. */
export function makeShakaByteRanges(film: string, folder: string): string {
  return runShaka(folder, [
    `in=${film},stream=video,output=video.mp4,playlist_name=video.m3u8`,
    `in=${film},stream=audio,output=audio.mp4,playlist_name=audio.m3u8,hls_group_id=audio,hls_name=English`,
  ]);
}

function runShaka(folder: string, rest: readonly string[]): string {
  mkdirSync(folder, { recursive: true });
  // The package's own entry point exits with 0 whatever happens.
  const entry = createRequire(import.meta.url).resolve('shaka-packager/package.json');
  const packager = join(dirname(entry), 'bin', `packager-linux-${process.arch}`);
  const common = [
    '--quiet',
    '--io_cache_size',
    '1048576',
    '--segment_duration',
    '1',
    '--generate_static_live_mpd',
    '--hls_master_playlist_output',
    'master.m3u8',
    '--mpd_output',
    'manifest.mpd',
  ];
  execFileSync(packager, [...common, ...rest], { cwd: folder, stdio: 'pipe' });
  return folder;
}

/** HLS with CMAF segments by mediabunny; with `singleFile`, as byte ranges. */
export async function makeMediabunny(film: string, folder: string, singleFile = false): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const input = new Input({ source: new FilePathSource(film), formats: ALL_FORMATS });
  const output = new Output({
    format: new HlsOutputFormat({
      segmentFormat: new CmafOutputFormat(),
      targetDuration: 1,
      singleFilePerPlaylist: singleFile,
    }),
    target: new PathedTarget(join(folder, 'master.m3u8'), ({ path }) => new FilePathTarget(path)),
  });
  const conversion = await Conversion.init({ input, output });
  await conversion.execute();
  return folder;
}
