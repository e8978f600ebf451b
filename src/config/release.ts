/** The name of this program in manifests, logs and responses. The version is that of package.json (a test compares them). */
export const RELEASE = { product: 'Attestream', version: '0.1.0' } as const;
