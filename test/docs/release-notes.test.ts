import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { withRelease } from '../../scripts/release-notes.ts';

const UNRELEASED = new URL('../../changelog/unreleased/', import.meta.url);
const BEFORE = '# Changelog\n\nWhat users notice.\n\n## 0.1.0 (2026-01-01)\n\n### Added\n\n- The first.\n';

describe('the notes of a release', () => {
  test('stand before the others in the changelog, with its changes by section', () => {
    const changes = [
      { name: 'fixed-gaps.md', text: 'Gaps count.\nThey did not.\n' },
      { name: 'added-alerts.md', text: 'Alerts.\n' },
      { name: 'fixed-lines.md', text: 'Lines end.\n' },
    ];
    const sections = '### Added\n\n- Alerts.\n\n### Fixed\n\n- Gaps count.\n  They did not.\n- Lines end.\n\n';
    assert.equal(
      withRelease(BEFORE, '0.2.0 (2026-02-02)', changes),
      BEFORE.replace('## 0.1.0', `## 0.2.0 (2026-02-02)\n\n${sections}## 0.1.0`),
    );
  });

  test('are refused for a change of no known section, which is named', () => {
    assert.throws(() => withRelease(BEFORE, '0.2.0', [{ name: 'mended-gaps.md', text: 'Gaps.' }]), /mended-gaps\.md/);
  });

  test('can be made of all changes that no release has', () => {
    const changes = readdirSync(UNRELEASED)
      .filter((name) => name.endsWith('.md'))
      .map((name) => ({ name, text: readFileSync(new URL(name, UNRELEASED), 'utf8') }));
    const released = withRelease(BEFORE, '0.2.0', changes);
    for (const { text } of changes) assert.ok(released.includes(text.split('\n')[0] ?? ''), text);
  });
});
