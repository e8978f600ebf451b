import { execFileSync } from 'node:child_process';
import { type ReleasedPackage, ROOT } from './packages-of-release.ts';

/** Packages that hold compiled or joined code of others, and what is known of that code. */
const HOLDS_OTHERS: Readonly<Record<string, string>> = {
  '@contentauth/c2pa-node': 'Rust crates, compiled into `dist/index.node`',
  '@contentauth/c2pa-wasm': 'Rust crates, compiled into `vendor/c2pa_bg.wasm`',
  'shaka-packager': 'C and C++ libraries, compiled into `bin/packager-linux-x64`',
  'hls.js': 'JavaScript packages, joined in `vendor/hls.js`',
  '@scalar/fastify-api-reference': 'JavaScript packages, joined in the script of the API reference',
};

interface Component {
  'bom-ref': string;
  properties: { name: string; value: string }[];
  scope?: string;
}

interface BillOfMaterials {
  metadata: { component: { 'bom-ref': string; type: string; name: string } };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
  compositions?: { aggregate: string; assemblies: string[] }[];
}

/** Returns what npm says of packages in CycloneDX, with the place of each in the published package. */
export function billOfMaterials(packages: readonly ReleasedPackage[]): BillOfMaterials {
  // Not `--omit=dev`: npm would leave out packages of production on which those of development depend as well.
  const command = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'];
  const bom: BillOfMaterials = JSON.parse(
    execFileSync('npm', command, { cwd: ROOT, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }),
  );
  const places = Map.groupBy(packages, refOf);
  const self = bom.metadata.component;
  const components = bom.components
    .filter((component) => places.has(component['bom-ref']))
    .map((component) => ({
      ...component,
      scope: 'required',
      properties: (places.get(component['bom-ref']) ?? []).flatMap(placesOf),
    }));
  return {
    ...bom,
    metadata: { ...bom.metadata, component: { ...self, type: 'application', name: 'attestream' } },
    components,
    dependencies: bom.dependencies
      .filter(({ ref }) => ref === self['bom-ref'] || places.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((other) => places.has(other)) })),
    compositions: [
      { aggregate: 'incomplete', assemblies: packages.filter(({ name }) => name in HOLDS_OTHERS).map(refOf) },
    ],
  };
}

function refOf({ name, version }: ReleasedPackage): string {
  return `${name}@${version}`;
}

function placesOf({ path, copies }: ReleasedPackage): { name: string; value: string }[] {
  const paths = copies.length === 0 ? [path] : copies.map((copy) => `vendor/${copy}`);
  return paths.map((value) => ({ name: 'attestream:path', value }));
}

/** Returns a page of the licences of packages, and of what about them is not known. */
export function licenceList(title: string, packages: readonly ReleasedPackage[]): string {
  const rows = packages.map(({ name, version, license, licenseFiles }) => {
    return `| ${name} | ${version} | ${license ?? 'not named'} | ${licenseFiles.join(', ') || 'none'} |`;
  });
  const withoutText = packages.filter(({ licenseFiles }) => licenseFiles.length === 0).map(refOf);
  const withoutName = packages.filter(({ license }) => license === null || /^see /i.test(license)).map(refOf);
  const others = packages.filter(({ name }) => name in HOLDS_OTHERS);
  return [
    `# Licences of ${title}`,
    'Attestream itself: Apache-2.0. The licences of packages are those that their package.json names; nobody has compared them with their source.',
    ['| package | version | licence | texts in the package |', '|---|---|---|---|', ...rows].join('\n'),
    '## Not known',
    [
      `- Packages without a text of their licence, so that its copyright lines are not known: ${withoutText.join(', ') || 'none'}.`,
      `- Packages whose licence stands in their text only: ${withoutName.join(', ') || 'none'}.`,
      ...others.map(
        (other) => `- ${refOf(other)} holds ${HOLDS_OTHERS[other.name]}. Their licences are listed nowhere.`,
      ),
    ].join('\n'),
    '',
  ].join('\n\n');
}
