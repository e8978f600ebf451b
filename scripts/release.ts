// `npm run release`: writes release/, or the folder that is given: the package to install, what it holds (CycloneDX), and its licences.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { RELEASE } from '#config/release.ts';
import { billOfMaterials, licenceList } from './bill-of-materials.ts';
import { build } from './build.ts';
import { bundledPackages, copiedPackages, filesOf, ROOT, SDK, sdkManifest } from './packages-of-release.ts';

const target = resolve(process.argv[2] ?? join(ROOT, 'release'));
const name = `attestream-${RELEASE.version}`;
const bundled = bundledPackages();
const packages = [...bundled, ...copiedPackages()].sort((a, b) => a.path.localeCompare(b.path));

mkdirSync(target, { recursive: true });
const staged = mkdtempSync(join(tmpdir(), 'attestream-release-'));
try {
  build(staged);
  const manifest = join('node_modules', SDK, 'package.json');
  mkdirSync(dirname(join(staged, manifest)), { recursive: true });
  writeFileSync(join(staged, manifest), JSON.stringify(sdkManifest(), null, 2));
  pack(
    staged,
    bundled.flatMap(filesOf).filter((file) => file !== manifest),
  );
} finally {
  rmSync(staged, { recursive: true });
}
writeFileSync(join(target, `${name}.cdx.json`), `${JSON.stringify(billOfMaterials(packages), null, 2)}\n`);
writeFileSync(join(target, `${name}.licences.md`), licenceList(`${name}.tgz`, packages));
for (const extension of ['tgz', 'cdx.json', 'licences.md']) console.log(join(target, `${name}.${extension}`));

/** Writes the tarball from a folder and files of the clone. npm extracts regular files only, so that no hard links are stored. */
function pack(folder: string, files: readonly string[]): void {
  const entries = ['--mtime=@0', '--owner=0', '--group=0', '--mode=u=rwX,go=rX', '--sort=name', '--hard-dereference'];
  const fromClone = [`--directory=${ROOT}`, '--null', '--files-from=-'];
  const renamed = ['--transform=s,^\\./,package/,', '--transform=s,^node_modules/,package/node_modules/,'];
  execFileSync(
    'tar',
    [
      '--create',
      '--gzip',
      `--file=${join(target, `${name}.tgz`)}`,
      ...entries,
      ...renamed,
      `--directory=${folder}`,
      '.',
      ...fromClone,
    ],
    { input: files.join('\0'), stdio: ['pipe', 'inherit', 'inherit'] },
  );
}
