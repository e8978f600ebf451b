import { join } from 'node:path';
import { CEPH_LIBRARIES } from './ceph-programs.ts';
import type { OwnAddress } from './own-address.ts';

/** Settings of a cluster of one monitor, one object store in memory and one S3 gateway. */
export interface CephPlace {
  /** A short absolute path: sockets are made in it, whose paths the system bounds to 107 bytes. */
  readonly folder: string;
  readonly clusterId: string;
  readonly monitor: OwnAddress;
  readonly gateway: OwnAddress;
}

/** Bytes that the store may hold, all objects together; they take memory when they are written. */
const STORE_SIZE_BYTES = 16 * 1024 ** 3;

/** The text of `ceph.conf`: loopback only, no keys between the parts, one copy and no history of anything, and no waiting. */
export function cephSettings({ folder, clusterId, monitor, gateway }: CephPlace): string {
  return `[global]
fsid = ${clusterId}
mon host = [v2:${monitor.host}:${monitor.port}/0]
public addr = ${monitor.host}
cluster addr = ${monitor.host}
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
ms mon service mode = crc
ms mon cluster mode = crc
run dir = ${folder}
admin socket = ${folder}/$name.asok
pid file =
log file = ${folder}/$name.log
crash dir = ${folder}/crash
keyring = ${folder}/keyring
plugin dir = ${join(CEPH_LIBRARIES, 'ceph')}
erasure code dir = ${join(CEPH_LIBRARIES, 'ceph/erasure-code')}
osd class dir = ${join(CEPH_LIBRARIES, 'rados-classes')}
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
mon max pg per osd = 1000
osd crush chooseleaf type = 0
paxos propose interval = 0.02
paxos min wait = 0.01
[mon]
mon data = ${folder}/mon
mon initial members = a
mon cluster log file = ${folder}/cluster.log
mon data avail crit = 1
[osd]
osd data = ${folder}/osd
osd objectstore = memstore
memstore device bytes = ${STORE_SIZE_BYTES}
osd max object name len = 2048
osd mclock skip benchmark = true
osd op queue = wpq
osd min pg log entries = 10
osd max pg log entries = 10
osd pg log dups tracked = 10
osd class update on start = false
[client.rgw]
rgw frontends = beast endpoint=${gateway.host}:${gateway.port} tcp_nodelay=1
rgw data = ${folder}/rgw
rgw thread pool size = 64
rgw gc obj min wait = 30
rgw gc processor period = 5
rgw gc processor max time = 5
`;
}
