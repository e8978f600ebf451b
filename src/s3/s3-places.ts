import { decodedS3Address, isS3Url, parseS3Url, type S3Address, s3UrlOf } from './s3-address.ts';

/**
 * The places that an address may be read from, written alike so that they can be compared with destinations: the key as
 * it is written and decoded, without slashes at its end. Empty for any other address.
 */
export function s3PlacesOf(url: string): string[] {
  if (!isS3Url(url)) return [];
  const address = parseS3Url(url);
  const decoded = decodedS3Address(address);
  return [address, ...(decoded === null ? [] : [decoded])].map(placeOf);
}

function placeOf({ bucket, key }: S3Address): string {
  return s3UrlOf({ bucket, key }).replace(/\/+$/, '');
}
