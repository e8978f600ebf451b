import { depthProblem, text } from './text.ts';

/** The address of a remote input. Credentials belong into the server's configuration or a presigned query, never here. */
export const sourceUrl = text.superRefine((value, context) => {
  const problem = urlProblem(value, {
    schemes: ['https:', 'http:', 's3:'],
    example: 'https://example.com/video.mp4',
    credentials: 'Use a presigned URL, or S3 access set up on the server',
  });
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

/** Where the result of a job is sent. */
export const callbackUrl = text.superRefine((value, context) => {
  const problem = urlProblem(value, {
    schemes: ['https:', 'http:'],
    example: 'https://example.com/signed',
    credentials: 'The signature of a callback proves where it comes from',
  });
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

interface UrlRules {
  readonly schemes: readonly string[];
  readonly example: string;
  /** What to do instead of giving credentials. */
  readonly credentials: string;
}

/** What is wrong with an address, without repeating it: it may hold a secret. */
function urlProblem(value: string, { schemes, example, credentials }: UrlRules): string | null {
  if (!URL.canParse(value)) return `is not a URL. Give a whole address, such as ${example}`;
  const url = new URL(value);
  if (!schemes.includes(url.protocol)) {
    const usable = schemes.map((scheme) => `${scheme}//`);
    return `has the scheme "${url.protocol.slice(0, -1)}". Use ${usable.slice(0, -1).join(', ')} or ${usable.at(-1)}`;
  }
  if (url.hostname === '') return 'names no host or bucket';
  if (url.username !== '' || url.password !== '') return `holds credentials. ${credentials}`;
  return url.protocol === 's3:' ? depthProblem(value) : null;
}
