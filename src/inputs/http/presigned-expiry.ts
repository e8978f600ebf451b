/** How servers say that a presigned URL has expired: S3, Google, Azure. */
const EXPIRY_WORDS = /request has expired|ExpiredToken|not valid in the specified time frame/i;

/**
 * Whether a refusal means that a presigned URL has expired, by what the server says or, since some say nothing, by the
 * time that stands in the URL itself: AWS and Google (`X-Amz-Date` and `X-Amz-Expires`, `X-Goog-…`), CloudFront and
 * older S3 (`Expires`, seconds since 1970), Azure (`se`).
 */
export function isExpiryOf(url: URL, answer: string, nowMs = Date.now()): boolean {
  if (EXPIRY_WORDS.test(answer)) return true;
  const ends = [
    relativeEnd(url, 'X-Amz'),
    relativeEnd(url, 'X-Goog'),
    Number(parameter(url, 'Expires') ?? Number.NaN) * 1000,
    Date.parse(parameter(url, 'se') ?? ''),
  ];
  return ends.some((endMs) => endMs < nowMs);
}

/** NaN where the URL has no such time. */
function relativeEnd(url: URL, prefix: string): number {
  const date = parameter(url, `${prefix}-Date`)?.replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5');
  return Date.parse(date ?? '') + Number(parameter(url, `${prefix}-Expires`) ?? Number.NaN) * 1000;
}

function parameter(url: URL, name: string): string | undefined {
  const wanted = name.toLowerCase();
  return [...url.searchParams].find(([key]) => key.toLowerCase() === wanted)?.[1];
}
