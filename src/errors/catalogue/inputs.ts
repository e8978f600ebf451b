import { entry } from '../entry.ts';

/** The configuration key that bounds each thing that a folder can hold too much of. */
const FOLDER_BOUND_KEYS = {
  files: 'max_files',
  folders: 'max_files',
  bytes: 'max_bytes',
  'levels of folders': 'max_depth',
} as const;

/** A path as a request spells it, and what it is relative to: the folder that the service was started in, or unsaid. */
interface LocalPath {
  readonly path: string;
  readonly relativeTo?: 'start_folder';
}

/** Is told of relative paths. The folder itself is inside the deployment, so it is not named. */
const FROM_START_FOLDER =
  'The path is relative, so it starts at the folder that the service was started in: give an absolute one.';

/** Returns what to do about a path at which nothing is. */
function remedyOf(path: string, relativeTo: LocalPath['relativeTo']): string {
  if (/^(?:https?|s3):\/\//i.test(path)) {
    return 'It is an address: give it as "url", with the type "remote_file_url" or "remote_folder_url".';
  }
  if (/^[a-z][a-z\d+.-]*:\/\//i.test(path)) {
    return 'It is an address of a kind that is not read: only http://, https:// and s3:// are.';
  }
  if (relativeTo === 'start_folder') return FROM_START_FOLDER;
  return 'Check the path, and that it is the same on the host of the service.';
}

/** Errors of reaching, opening and reading an input, before its format is known. */
export const inputErrors = {
  SOURCE_NOT_FOUND: entry<LocalPath>(
    'PROCESSING_FAILED',
    ({ path, relativeTo }) => `There is nothing at "${path}". ${remedyOf(path, relativeTo)}`,
    { dependencies: ['input_folder'] },
  ),
  SOURCE_IS_FOLDER: entry<{ path: string }>(
    'INVALID_INPUT_TYPE',
    ({ path }) => `"${path}" is a folder, and this input takes a file. Name a file in it.`,
  ),
  SOURCE_NOT_FOLDER: entry<{ path: string }>(
    'INVALID_INPUT_TYPE',
    ({ path }) => `"${path}" is no folder, and this input takes a folder. Name the one that it lies in.`,
  ),
  SOURCE_NOT_REGULAR: entry<{ path: string; kind: string }>(
    'INVALID_INPUT_TYPE',
    ({ path, kind }) => `"${path}" is ${kind}. Only regular files are read.`,
  ),
  SOURCE_IS_LINK: entry<{ path: string }>(
    'INVALID_INPUT_TYPE',
    ({ path }) => `"${path}" is a link, and links are not followed. Name the file that it leads to.`,
  ),
  FOLDER_WITHOUT_PLAYLISTS: entry<{ path: string; isWatched?: boolean }>(
    'INVALID_INPUT_TYPE',
    ({ path, isWatched = false }) =>
      `"${path}" is a folder without playlists (.m3u8, .mpd), and so no publication. ${isWatched ? 'Put the media files in it into the watched folder itself' : 'Use --recursive for the media files and publications in it'}.`,
  ),
  NOTHING_TO_PLAY: entry<{ path: string; names: readonly string[] }>(
    'INVALID_INPUT_TYPE',
    ({ path, names }) =>
      `The folder "${path}" holds none of ${names.join(', ')}, and not a single other HLS playlist. Name the playlist or media file itself.`,
  ),
  DASH_NOT_PLAYED: entry<{ path: string }>(
    'INVALID_INPUT_TYPE',
    ({ path }) =>
      `"${path}" is an MPD (DASH), and the player plays HLS. Name the HLS playlist of the publication. "attestream verify" checks MPDs, too.`,
  ),
  FOLDER_WATCHED: entry<{ path: string; pid: number | null }>(
    'INTERNAL_ERROR',
    ({ path, pid }) =>
      `The folder "${path}" is watched by another process${pid === null ? '' : `, probably the one with the id ${pid}`}. Stop it, or watch another folder.`,
  ),
  WATCH_OUTPUT_INVALID: entry<{ path: string }>(
    'VALIDATION_FAILED',
    ({ path }) =>
      `Outputs cannot be written to the watched folder "${path}" itself. Name another folder with --output.`,
  ),
  SOURCE_EMPTY: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) => `"${path}" is empty (0 bytes). Submit it again when it has been written.`,
  ),
  SOURCE_NOT_PERMITTED: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The service has no permission to read "${path}". Let its user read it and enter the folders above it.`,
    { dependencies: ['input_folder'] },
  ),
  SOURCE_OUTSIDE_ROOTS: entry<LocalPath>(
    'PROCESSING_FAILED',
    ({ path, relativeTo }) =>
      `"${path}" does not lie in a folder that inputs may be read from, after its links are resolved. The operator sets these folders as input_resolvers.local.roots.${relativeTo === 'start_folder' ? ` ${FROM_START_FOLDER}` : ''}`,
  ),
  SOURCE_IN_SYSTEM_PLACE: entry<{ path: string; place: string }>(
    'PROCESSING_FAILED',
    ({ path, place }) =>
      `"${path}" lies in ${place}, a folder of the system that inputs are not read from. Move the file, or let the operator name its folder in input_resolvers.local.roots.`,
  ),
  SOURCE_PROTECTED: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `"${path}" belongs to the service itself (its data, configuration, keys or staged outputs) and is never read as an input.`,
  ),
  FOLDER_IS_ROOT: entry<object>(
    'VALIDATION_FAILED',
    () => 'The root of the file system is not taken as an input. Name the folder that holds the media.',
  ),
  FOLDER_EMPTY: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The folder "${path}" holds no files. Check its name, or submit it again when its files have been written.`,
    { dependencies: ['input_folder'] },
  ),
  FOLDER_TOO_LARGE: entry<{ path: string; what: keyof typeof FOLDER_BOUND_KEYS; limit: number }>(
    'PROCESSING_FAILED',
    ({ path, what, limit }) =>
      `The folder "${path}" holds more than ${limit} ${what}. Split it, or let the operator raise input_resolvers.${FOLDER_BOUND_KEYS[what]}.`,
  ),
  FOLDER_ENTRY_REFUSED: entry<{ path: string; entry: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ path, entry: name, problem }) =>
      `The folder "${path}" cannot be taken as an input: "${name}" in it ${problem}. Remove it, or submit a folder without it.`,
  ),
  SOURCE_PATH_INVALID: entry<{ problem: string }>(
    'VALIDATION_FAILED',
    ({ problem }) => `The path of the input cannot be used: ${problem}.`,
  ),
  SOURCE_OPEN_FAILED: entry<{ path: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ path, problem }) => `"${path}" could not be opened: ${problem}. Correct that, and submit it again.`,
    { dependencies: ['input_folder'] },
  ),
  HTTP_HOST_UNKNOWN: entry<{ host: string }>(
    'PROCESSING_FAILED',
    ({ host }) => `There is no host "${host}". Check the name, and that the service can resolve it.`,
  ),
  HTTP_UNREACHABLE: entry<{ address: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ address, problem }) =>
      `The server of "${address}" could not be reached: ${problem}. Check the address and port, and submit the input again.`,
    { class: 'retry' },
  ),
  HTTP_ADDRESS_DENIED: entry<{ host: string }>(
    'PROCESSING_FAILED',
    ({ host }) =>
      `The host "${host}" has an address that this service does not fetch from. The operator sets these as input_resolvers.http.deny_networks; link-local addresses and those of cloud metadata are always among them.`,
  ),
  HTTP_CERTIFICATE_REFUSED: entry<{ address: string; code: string }>(
    'PROCESSING_FAILED',
    ({ address, code }) =>
      `The certificate of the server of "${address}" is not accepted (${code}). Renew it; the operator can add a private authority with NODE_EXTRA_CA_CERTS.`,
  ),
  HTTP_NOT_FOUND: entry<{ address: string; status: number }>(
    'PROCESSING_FAILED',
    ({ address, status }) => `There is nothing at "${address}": the server answered ${status}. Check the address.`,
  ),
  HTTP_FORBIDDEN: entry<{ address: string; status: number }>(
    'PROCESSING_FAILED',
    ({ address, status }) =>
      `The server does not let the service read "${address}": it answered ${status}. Submit a presigned URL, or one that has not been changed since it was signed.`,
  ),
  HTTP_LINK_EXPIRED: entry<{ address: string; status: number }>(
    'PROCESSING_FAILED',
    ({ address, status }) =>
      `The presigned URL of "${address}" has expired: the server answered ${status}. Make a new one that lasts until the job ends, and submit the input again.`,
  ),
  HTTP_BUSY: entry<{ address: string; status: number }>(
    'PROCESSING_FAILED',
    ({ address, status }) =>
      `The server of "${address}" kept answering ${status}, also when asked again. Submit the input again later.`,
    { class: 'retry' },
  ),
  HTTP_REFUSED: entry<{ address: string; status: number }>(
    'PROCESSING_FAILED',
    ({ address, status }) => `The server answered ${status} for "${address}", and sent no file. Check the address.`,
  ),
  HTTP_REDIRECTS_ENDLESS: entry<{ address: string; limit: number }>(
    'PROCESSING_FAILED',
    ({ address, limit }) =>
      `"${address}" was redirected more than ${limit} times. Submit the address that it leads to, if it leads anywhere.`,
  ),
  HTTP_REDIRECT_REFUSED: entry<{ address: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ address, problem }) =>
      `The redirect of "${address}" is not followed: ${problem}. Submit the address of the file itself.`,
  ),
  HTTP_ENCODED: entry<{ address: string; encoding: string }>(
    'PROCESSING_FAILED',
    ({ address, encoding }) =>
      `The server sends "${address}" packed (Content-Encoding: ${encoding}), although it was asked not to: media is read as it is. Let it send the file unpacked.`,
  ),
  S3_ENCODED: entry<{ address: string; encoding: string }>(
    'PROCESSING_FAILED',
    ({ address, encoding }) =>
      `"${address}" says that it is packed (Content-Encoding: ${encoding}), so that browsers decode it to other bytes than are read here. Upload it unpacked, or remove that from its metadata.`,
  ),
  S3_REDIRECTED: entry<{ address: string }>(
    'PROCESSING_FAILED',
    ({ address }) =>
      `The metadata of "${address}" redirect browsers to another address (x-amz-website-redirect-location), where the bucket is published as a website. Submit the object that it leads to, or remove that from its metadata.`,
  ),
  HTTP_TIMED_OUT: entry<{ address: string; timeoutMs: number }>(
    'PROCESSING_FAILED',
    ({ address, timeoutMs }) =>
      `The server of "${address}" fell silent for ${timeoutMs} ms. Submit the input again; the operator sets the time as input_resolvers.http.idle_timeout_ms.`,
    { class: 'retry' },
  ),
  HTTP_ANSWER_INVALID: entry<{ address: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ address, problem }) =>
      `The server's response for "${address}" cannot be right: ${problem}. Check the address, its port and scheme included, and the server.`,
  ),
  HTTP_CUT_SHORT: entry<{ address: string; receivedBytes: number; sizeBytes: number | null }>(
    'PROCESSING_FAILED',
    ({ address, receivedBytes, sizeBytes }) =>
      `"${address}" broke off after ${receivedBytes} of ${sizeBytes ?? 'unknown'} bytes, also when asked again. Check the server, and submit the input again.`,
    { class: 'retry' },
  ),
  HTTP_TOO_LARGE: entry<{ address: string; limitBytes: number }>(
    'PROCESSING_FAILED',
    ({ address, limitBytes }) =>
      `"${address}" has more than ${limitBytes} bytes. The operator sets the limit as input_resolvers.http.max_bytes.`,
  ),
  FOLDER_NOT_LISTED: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The server does not list what is in "${path}". Submit the address of a playlist or MPD instead; operations with params.playlist_pattern also find it by that, without wildcards.`,
  ),
  SCRATCH_FULL: entry<{ path: string; neededBytes: number; freeBytes: number; reservedBytes: number }>(
    'PROCESSING_FAILED',
    ({ path, neededBytes }) =>
      `The input has to lie on the host of the service while it is worked on, which takes ${neededBytes} bytes and 1 MiB to spare, and these are not free at "${path}" beside what is reserved for other inputs. The operator frees disk space, or moves jobs.scratch_dir.`,
    {
      class: 'outage',
      dependencies: ['scratch_folder'],
      callersSee:
        'The input has to lie on the host of the service while it is worked on, and there is not enough free disk space now. The operator frees disk space.',
    },
  ),
  SCRATCH_EXCEEDS_DISK: entry<{ path: string; neededBytes: number; totalBytes: number }>(
    'PROCESSING_FAILED',
    ({ path, neededBytes, totalBytes }) =>
      `The input has to lie on the host of the service while it is worked on, which takes ${neededBytes} bytes, and the file system at "${path}" has ${totalBytes} in all. Submit a smaller one, or let the operator move jobs.scratch_dir.`,
    {
      callersSee:
        'The input has to lie on the host of the service while it is worked on, and is larger than its disk. Submit a smaller one; the operator can set a larger disk.',
    },
  ),
  SCRATCH_UNUSABLE: entry<{ path: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ path, problem }) =>
      `The scratch folder "${path}" could not be made: ${problem}. The operator sets its path as jobs.scratch_dir.`,
    {
      class: 'outage',
      dependencies: ['scratch_folder'],
      callersSee: 'The service cannot put files where it needs them while it works on the input. Its log says why.',
    },
  ),
  SOURCE_CHANGED: entry<{ name: string }>(
    'PROCESSING_FAILED',
    ({ name }) => `"${name}" changed while it was read. Submit it again when it is complete.`,
  ),
  SOURCE_ENDED_EARLY: entry<{ name: string; offset: number; sizeBytes: number }>(
    'PROCESSING_FAILED',
    ({ name, offset, sizeBytes }) =>
      `"${name}" ended at byte ${offset}, before the ${sizeBytes} bytes it had when it was opened. It changed while it was read: submit it again when it is complete.`,
  ),
  SOURCE_READ_FAILED: entry<{ name: string; offset: number; problem: string }>(
    'PROCESSING_FAILED',
    ({ name, offset, problem }) =>
      `Reading "${name}" failed at byte ${offset}: ${problem}. Check the disk or the network that it is read from, and submit it again.`,
    { dependencies: ['input_folder'] },
  ),
};
