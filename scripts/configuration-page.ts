// `npm run docs`: writes docs/configuration.md from config/service.toml (meanings, examples) and the schema (types, bounds,
// defaults). A test fails where the page is not what this writes.
import { writeFileSync } from 'node:fs';
import { describeKeys, type KeyDescription } from '#config/key-descriptions.ts';

const PAGE = new URL('../docs/configuration.md', import.meta.url);

const INTRODUCTION = `# Configuration

<!-- Written by "npm run docs" from config/service.toml and the schema: change those. -->

Nothing has to be configured. The service reads \`config/service.toml\`; the variable \`SERVICE_CONFIG_PATH\` names another
file. Every key can be set by a variable \`SERVICE__SECTION__KEY\`, which wins over the file: sections in sections are joined
the same way, and lists are comma-separated (\`SERVICE__OUTPUT_SINKS__LOCAL__NAMING=in_place\`, \`SERVICE__AUTH__TOKENS=a,b\`).
Relative paths are taken from the folder that the service is started in. Unknown keys and wrong types stop the start, with a
message that lists all of them.
`;

/** Returns the text of docs/configuration.md. */
export function configurationPage(): string {
  const sections = Map.groupBy(describeKeys(), ({ section }) => section);
  const parts = [...sections].flatMap(([section, keys]) => [`## \`[${section}]\`\n`, ...keys.map(keyEntry)]);
  return [INTRODUCTION, ...parts].join('\n');
}

function keyEntry({ key, bounds, default: usual, example, meaning }: KeyDescription): string {
  const shown = example === null ? `default ${usual}` : `default: ${usual}; for example \`${example}\``;
  return `**\`${key}\`** (${[bounds, shown].filter(Boolean).join('; ')})\n${meaning === '' ? '' : `${meaning}\n`}`;
}

if (import.meta.main) writeFileSync(PAGE, configurationPage());
