import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { isNetwork } from '#config/addresses.ts';
import { DeniedNetworks } from '#inputs/guarded-request.ts';

const nothingMore = new DeniedNetworks([]);

describe('denied networks', () => {
  test('always hold link-local addresses and where clouds keep credentials', () => {
    for (const address of [
      '169.254.0.1',
      '169.254.169.254',
      'fe80::1',
      'fe80::1%eth0',
      'febf::1',
      'fd00:ec2::254',
      'fd20:ce::254',
      '100.100.100.200',
      '168.63.129.16',
      '192.0.0.192',
    ]) {
      assert.ok(nothingMore.denies(address), address);
    }
    for (const address of ['127.0.0.1', '10.0.0.1', '8.8.8.8', '::1', 'fec0::1', '2606:4700::1', 'fd00:ec2::253']) {
      assert.ok(!nothingMore.denies(address), address);
    }
  });

  test('hold an IPv4 address in each form of IPv6 that carries it', () => {
    for (const form of [
      '::ffff:169.254.169.254',
      '::ffff:a9fe:a9fe',
      '::169.254.169.254',
      '::ffff:0:169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::169.254.169.254',
      '2002:a9fe:a9fe::1',
      '2001:0:1:2:3:4:5601:5601', // Teredo, all bits turned round.
      '2606:4700::5efe:169.254.169.254',
      '2606:4700::200:5efe:a9fe:a9fe',
    ]) {
      assert.ok(nothingMore.denies(form), form);
    }
  });

  test('hold every address of a configured network in every form, and no other', () => {
    const denied = new DeniedNetworks(['10.0.0.0/8', 'fc00::/7', '192.0.2.7']);
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const inside = address.startsWith('10.') || address === '192.0.2.7' || nothingMore.denies(address);
        assert.equal(denied.denies(address), inside);
        assert.equal(denied.denies(`::ffff:${address}`), inside);
        assert.equal(denied.denies(`64:ff9b::${address}`), inside);
      }),
    );
    assert.ok(denied.denies('fd12::1'));
    assert.ok(!denied.denies('fe00::1'));
  });

  test('take an address that means "here" for this host', () => {
    const denied = new DeniedNetworks(['127.0.0.0/8', '::1']);
    for (const address of ['0.0.0.0', '::', '::ffff:0.0.0.0', '127.9.9.9', '::1']) {
      assert.ok(denied.denies(address), address);
    }
  });

  test('hold what is no address', () => {
    for (const text of ['', 'host', '1.2.3', '::x']) assert.ok(nothingMore.denies(text), text);
  });

  test('are told from other texts', () => {
    for (const text of ['10.0.0.0/8', '::/0', 'fe80::/10', '192.0.2.7', '::1']) assert.ok(isNetwork(text), text);
    for (const text of ['', 'host', '10.0.0.0/33', '10/8', '10.1', '0x7f.1', '::/129', '1.2.3.4/']) {
      assert.ok(!isNetwork(text), text);
    }
  });
});
