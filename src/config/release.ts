import manifest from '../../package.json' with { type: 'json' };

/** The name of this program in manifests, logs and responses, and its version. */
export const RELEASE = { product: 'Attestream', version: manifest.version } as const;
