import { text } from './text.ts';

const SCHEMES = ['https:', 'http:', 's3:'];

/** The address of a remote input. Credentials belong into the server's configuration or a presigned query, never here. */
export const sourceUrl = text.superRefine((value, context) => {
  const problem = urlProblem(value);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

/** What is wrong with the address, without repeating it: it may hold a secret. */
function urlProblem(value: string): string | null {
  if (!URL.canParse(value)) return 'is not a URL. Give a whole address, such as https://example.com/video.mp4';
  const url = new URL(value);
  if (!SCHEMES.includes(url.protocol)) {
    return `has the scheme "${url.protocol.slice(0, -1)}". Use https://, http:// or s3://`;
  }
  if (url.hostname === '') return 'names no host or bucket';
  if (url.username !== '' || url.password !== '')
    return 'holds credentials. Use a presigned URL, or S3 access set up on the server';
  return null;
}
