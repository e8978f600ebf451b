import { existsSync } from 'node:fs';

/**
 * Files of packages that the console loads, by their name under `/console/vendor/`. In a clone they lie in their packages; the
 * published package has copies in `vendor/`, and not the packages. Worker processes load the reader (c2pa) from there too.
 */
const IN_PACKAGES = {
  'preact.js': () => import.meta.resolve('preact'),
  'preact-hooks.js': () => import.meta.resolve('preact/hooks'),
  'signals.js': () => import.meta.resolve('@preact/signals'),
  'signals-core.js': () => import.meta.resolve('@preact/signals-core'),
  'htm.js': () => import.meta.resolve('htm'),
  'pico.css': () => import.meta.resolve('@picocss/pico/css/pico.min.css'),
  'hls.js': () => import.meta.resolve('hls.js/dist/hls.min.mjs'),
  'c2pa.js': () => import.meta.resolve('@contentauth/c2pa-wasm'),
  'c2pa_bg.wasm': () => import.meta.resolve('@contentauth/c2pa-wasm/c2pa.wasm'),
};

type VendorFile = keyof typeof IN_PACKAGES;

export const VENDOR_FILES = Object.keys(IN_PACKAGES) as readonly VendorFile[];

const COPIES = new URL('../../vendor/', import.meta.url);
const isPublished = existsSync(COPIES);

/** Returns the address (`file:`) of a file. */
export function vendorFile(name: VendorFile): URL {
  return new URL(isPublished ? new URL(name, COPIES) : IN_PACKAGES[name]());
}
