import { entry } from './entry.ts';

/** What is done to a place in S3 when it goes wrong, as the object of "the right to …". */
export type S3Action = 'read' | 'list' | 'write';

/** What can be wrong with S3, for inputs and outputs alike. An address is `s3://bucket/key`, and holds no secret. */
export const s3Errors = {
  S3_SDK_MISSING: entry<{ sections: readonly string[] }>(
    'INTERNAL_ERROR',
    ({ sections }) =>
      `The configuration asks for S3 (${sections.join(' and ')}), and the AWS SDK is not installed. Install it with: npm install @aws-sdk/client-s3; or remove what is configured there.`,
  ),
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
  S3_BUCKET_REFUSED: entry<{ bucket: string }>(
    'VALIDATION_FAILED',
    ({ bucket }) =>
      `The bucket "${bucket}" is not one that inputs are read from. The operator sets these as input_resolvers.s3.buckets.`,
  ),
  S3_OUTPUT_BUCKET_REFUSED: entry<{ bucket: string }>(
    'VALIDATION_FAILED',
    ({ bucket }) =>
      `The bucket "${bucket}" is not one that outputs are written to. The operator sets these as output_sinks.s3.buckets.`,
  ),
  S3_PROBE_FAILED: entry<{ bucket: string; problem: string }>(
    'INTERNAL_ERROR',
    ({ bucket, problem }) =>
      `The service was not started: an object could not be written to and deleted from the bucket "${bucket}" of output_sinks.s3.buckets. ${problem}`,
  ),
  S3_OBJECT_MISSING: entry<{ address: string }>(
    'PROCESSING_FAILED',
    ({ address }) =>
      `There is no object "${address}". Check the key, capitals included; keys are taken as they are written.`,
  ),
  S3_BUCKET_MISSING: entry<{ bucket: string }>(
    'PROCESSING_FAILED',
    ({ bucket }) => `There is no bucket "${bucket}" at the S3 endpoint of this deployment. Check its name.`,
  ),
  S3_ACCESS_DENIED: entry<{ address: string; action: S3Action }>(
    'PROCESSING_FAILED',
    ({ address, action }) =>
      `S3 refuses the service the right to ${action} "${address}"${action === 'read' ? ' (or there is no such object)' : ''}. Check the address; the operator checks the policies of the bucket and of the service's credentials.`,
    { operational: true },
  ),
  S3_CREDENTIALS_REFUSED: entry<{ problem: string }>(
    'PROCESSING_FAILED',
    ({ problem }) =>
      `S3 did not accept the service's credentials: ${problem}. The operator checks the AWS credentials of the service, and its clock.`,
    { operational: true },
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
  ),
  S3_UNREACHABLE: entry<{ address: string; problem: string }>(
    'PROCESSING_FAILED',
    ({ address, problem }) =>
      `S3 could not be reached for "${address}": ${problem}. Try again later; if it repeats, the operator checks endpoint_url, region and the network.`,
    { transient: true },
  ),
  S3_BUSY: entry<{ address: string; status: number; code: string }>(
    'PROCESSING_FAILED',
    ({ address, status, code }) =>
      `S3 kept answering ${status} (${code}) for "${address}", also when asked again. Try again later.`,
    { transient: true },
  ),
  S3_RANGE_REFUSED: entry<{ address: string }>(
    'PROCESSING_FAILED',
    ({ address }) =>
      `Asked for a part of "${address}", the S3 endpoint did not answer with that part. The operator checks what stands before the endpoint: ranges have to pass.`,
  ),
  S3_REQUEST_REFUSED: entry<{ address: string; status: number; code: string }>(
    'PROCESSING_FAILED',
    ({ address, status, code }) => `S3 answered ${status} (${code}) for "${address}".`,
  ),
};
