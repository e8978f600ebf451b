/** An address is shown up to this length. */
const SHOWN_MAX_LENGTH = 400;

/** An address as people and logs are told it: without the query, which may be a presigned URL's secret, and user names. */
export function shownAddress(url: URL): string {
  const shown = `${url.protocol}//${url.host}${url.pathname}`;
  return shown.length <= SHOWN_MAX_LENGTH ? shown : `${shown.slice(0, SHOWN_MAX_LENGTH)}…`;
}
