/** Encodings that leave bytes as they are. Uploads in pieces are `aws-chunked`: stores take that off, and some record it all the same. */
const UNCHANGED = /^(?:identity|aws-chunked|)$/i;

/** Tells whether a body of a `Content-Encoding` is the bytes of its file, as browsers get them too. */
export function leavesBytes(contentEncoding: string): boolean {
  return contentEncoding.split(',').every((each) => UNCHANGED.test(each.trim()));
}
