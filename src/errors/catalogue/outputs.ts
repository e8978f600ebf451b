import type { S3Action } from '../entry.ts';
import { BUCKETS, entry } from '../entry.ts';

const bucketRefused = (use: string, key: string) =>
  entry<{ bucket: string }>(
    'VALIDATION_FAILED',
    ({ bucket }) => `The bucket "${bucket}" is not one that ${use}. The operator sets these as ${key}.`,
  );

/** Errors of the destination of an output. */
export const placementErrors = {
  OUTPUT_SEGMENT_INVALID: entry<{ field: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ field, problem }) =>
      `${field} cannot be used as a part of the output's location: ${problem}. Give names of folders with slashes between them, such as news/2026.`,
  ),
  OUTPUT_TAKEN: entry<{ path: string }>(
    'VALIDATION_FAILED',
    ({ path }) =>
      `Another input of this request is written to "${path}". Give the inputs different names or submit them with different outputs.`,
  ),
  SIDECAR_OF_OTHER_FILE: entry<{ path: string; owner: string }>(
    'VALIDATION_FAILED',
    ({ path, owner }) =>
      `The sidecar "${path}" would replace that of "${owner}", which lies beside it. Submit the file with another output, or rename it.`,
  ),
  OUTPUT_TOUCHES_SOURCE: entry<{ path: string; source: string }>(
    'VALIDATION_FAILED',
    ({ path, source }) =>
      `The output "${path}" is, holds or lies inside "${source}", which this request reads. Choose another output.prefix or output.name.`,
  ),
  OUTPUT_LEAVES_BASE: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `A link on the way to "${path}" leads out of the base folder of outputs. Remove the link or choose another location.`,
  ),
  OUTPUT_IN_OWN_PLACE: entry<{ path: string }>(
    'VALIDATION_FAILED',
    ({ path }) =>
      `"${path}" is, holds or lies inside a file or folder of the service itself (its data, configuration or keys), and no output is written there. Choose another output.prefix or output.name.`,
  ),
  OUTPUT_NAME_RESERVED: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The output cannot hold "${path}": names that start with ".attestream" belong to the service. Rename the file or folder.`,
  ),
  OUTPUT_LINK_DANGLING: entry<{ path: string; target: string }>(
    'PROCESSING_FAILED',
    ({ path, target }) =>
      `Outputs cannot be written: "${path}" is a link to "${target}", which does not exist. Make that folder, mount it, or correct the link.`,
    {
      dependencies: ['output_folder'],
      callersSee:
        'Outputs cannot be written: a link on the way to them leads nowhere. The operator corrects it; the log of the service names it.',
    },
  ),
  OUTPUT_EXISTS: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) => `"${path}" exists already. Use --force to replace it, or name another output.`,
  ),
  OUTPUT_IS_FOLDER: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) => `The output cannot be written: "${path}" is a folder. Remove it or choose another location.`,
  ),
  OUTPUT_IS_FILE: entry<{ path: string }>(
    'PROCESSING_FAILED',
    ({ path }) =>
      `The output cannot be written: "${path}" is to be a folder, and is a file or a link. Remove it or choose another location.`,
  ),
  OUTPUT_DISK_FULL: entry<{ path: string; neededBytes: number; freeBytes: number; reservedBytes: number }>(
    'PROCESSING_FAILED',
    ({ path, neededBytes }) =>
      `"${path}" needs ${neededBytes} bytes and 1 MiB to spare, which its file system does not have beside what is reserved for other outputs. The operator frees disk space.`,
    { class: 'outage', dependencies: ['output_folder'] },
  ),
  FOLDER_HANGS: entry<{ problem: string }>(
    'PROCESSING_FAILED',
    ({ problem }) =>
      `The input made no progress, and a folder that it needs cannot be used: ${problem}. The operator looks at the file system.`,
    { class: 'outage', dependencies: ['input_folder', 'output_folder', 'scratch_folder'] },
  ),
  OUTPUT_DISK_FILLED: entry<{ path: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ path, problem }) => `"${path}" could not be written to its end: ${problem}. The operator frees disk space.`,
    { class: 'outage', dependencies: ['output_folder'] },
  ),
  OUTPUT_EXCEEDS_DISK: entry<{ path: string; neededBytes: number; totalBytes: number }>(
    'PROCESSING_FAILED',
    ({ path, neededBytes, totalBytes }) =>
      `"${path}" needs ${neededBytes} bytes, and its file system has ${totalBytes} in all. Choose another output, or let the operator move output_sinks.local.base_dir.`,
  ),
  OUTPUT_FAILED: entry<{ path: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ path, problem }) =>
      `"${path}" could not be written: ${problem}. Correct that, or choose another output.prefix or output.name.`,
    { dependencies: ['output_folder'] },
  ),
};

/** Errors of S3, for inputs and outputs alike. An address is `s3://bucket/key`, and holds no secret. */
export const s3Errors = {
  S3_REGION_MISSING: entry<object>(
    'PROCESSING_FAILED',
    () =>
      'No region of S3 is known to the service. The operator sets input_resolvers.s3.region or output_sinks.s3.region, or AWS_REGION in the environment.',
  ),
  S3_ADDRESS_INVALID: entry<{ problem: string }>(
    'VALIDATION_FAILED',
    ({ problem }) => `The address of the input cannot be used: ${problem}.`,
  ),
  S3_INPUTS_OFF: entry<object>(
    'VALIDATION_FAILED',
    () => 'This deployment reads no inputs from S3. The operator switches it on with input_resolvers.s3.',
  ),
  S3_BUCKET_REFUSED: bucketRefused('inputs are read from', 'input_resolvers.s3.buckets'),
  S3_OUTPUT_BUCKET_REFUSED: bucketRefused('outputs are written to', 'output_sinks.s3.buckets'),
  S3_PROBE_FAILED: entry<{ bucket: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ bucket, problem }) =>
      `The service was not started: an object could not be written to and deleted from the bucket "${bucket}" of output_sinks.s3.buckets. ${problem}`,
  ),
  OUTPUT_STORE_UNKNOWN: entry<{ path: string; key: string }>(
    'INTERNAL_ERROR',
    ({ path, key }) =>
      `The output lies in "${path}", and this node has no ${key} to read it with. Ask another node; the operator gives every node the same output_sinks.`,
  ),
  S3_OBJECT_MISSING: entry<{ address: string }>(
    'PROCESSING_FAILED',
    ({ address }) =>
      `There is no object "${address}". Check the key, capitals included; keys are taken as they are written.`,
  ),
  S3_BUCKET_MISSING: entry<{ bucket: string }>(
    'PROCESSING_FAILED',
    ({ bucket }) => `There is no bucket "${bucket}" at the S3 endpoint of this deployment. Check its name.`,
    { dependencies: BUCKETS },
  ),
  S3_ACCESS_DENIED: entry<{ address: string; action: S3Action }>(
    'PROCESSING_FAILED',
    ({ address, action }) =>
      `S3 refuses the service the right to ${action} "${address}"${action === 'read' ? ' (or there is no such object)' : ''}. Check the address; the operator checks the policies of the bucket and of the service's credentials.`,
    { dependencies: BUCKETS },
  ),
  S3_CREDENTIALS_REFUSED: entry<{ problem: string }>(
    'PROCESSING_FAILED',
    ({ problem }) =>
      `S3 did not accept the service's credentials: ${problem}. The operator checks the AWS credentials of the service, and its clock.`,
    { class: 'outage', dependencies: BUCKETS },
  ),
  S3_OBJECT_ARCHIVED: entry<{ address: string; storageClass: string | null }>(
    'PROCESSING_FAILED',
    ({ address, storageClass }) =>
      `"${address}" is archived${storageClass === null ? '' : ` (${storageClass})`} and cannot be read at once. Restore it first, then submit it again.`,
  ),
  S3_REGION_WRONG: entry<{ bucket: string; region: string | null }>(
    'PROCESSING_FAILED',
    ({ bucket, region }) =>
      `The bucket "${bucket}" is ${region === null ? 'in another region or at another endpoint' : `in the region ${region}`} than the service is set up for. The operator corrects region and endpoint_url.`,
    { dependencies: BUCKETS },
  ),
  S3_UNREACHABLE: entry<{ address: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ address, problem }) =>
      `S3 could not be reached for "${address}": ${problem}. The operator checks endpoint_url, region and the network.`,
    { class: 'outage', dependencies: BUCKETS },
  ),
  S3_BUSY: entry<{ address: string; status: number; code: string }>(
    'PROCESSING_FAILED',
    ({ address, status, code }) =>
      `S3 kept answering ${status} (${code}) for "${address}", also when asked again. The operator looks at the S3 server.`,
    { class: 'outage', dependencies: BUCKETS },
  ),
  S3_CONFLICT: entry<{ address: string }>(
    'PROCESSING_FAILED',
    ({ address }) =>
      `S3 kept refusing "${address}" because something else changes it at the same time, also when asked again. Let only one job write there.`,
    { class: 'retry' },
  ),
  S3_RANGE_REFUSED: entry<{ address: string }>(
    'PROCESSING_FAILED',
    ({ address }) =>
      `Asked for a part of "${address}", the S3 endpoint did not answer with that part. The operator checks what stands before the endpoint: ranges have to pass.`,
  ),
  S3_REQUEST_REFUSED: entry<{ address: string; status: number; code: string }>(
    'PROCESSING_FAILED',
    ({ address, status, code }) =>
      `S3 answered ${status} (${code}) for "${address}". Check the address; the operator checks the endpoint and what its policies allow.`,
  ),
};
