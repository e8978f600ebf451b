// Shows the API reference (Scalar). Everything that would load from, or send to, other servers is turned off.
/** @type {typeof globalThis & { Scalar: { createApiReference(selector: string, configuration: object): void } }} */
const page = /** @type {any} */ (globalThis);

page.Scalar.createApiReference('#app', {
  url: '/openapi.json',
  favicon: 'data:,',
  withDefaultFonts: false,
  telemetry: false,
  hideClientButton: true,
  showDeveloperTools: 'never',
  mcp: { disabled: true },
  agent: { disabled: true },
});
