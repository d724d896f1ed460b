// By what an address is counted (§8.2). A site gets a /64 of IPv6, so its 2^64 addresses are
// one caller.
import { canonicalizeAddress } from './address.ts';

/** `203.0.113.7`, `2001:db8:1:2::/64`, or `unknown`, of an address in its canonical form. */
export function toAddressKey(address: string): string {
  // In a canonical address only IPv6 has a colon.
  if (!address.includes(':')) return address;
  const prefix = findLeadingGroups(address).join(':');
  return `${canonicalizeAddress(`${prefix}::`) ?? address}/64`;
}

const PREFIX_GROUPS = 4;
const GROUPS = 8;

/** The first four of the eight groups, zeros that `::` stands for included. */
function findLeadingGroups(address: string): readonly string[] {
  const [head = '', tail] = address.split('::');
  const first = splitGroups(head);
  const last = splitGroups(tail ?? '');
  const zeros = new Array<string>(Math.max(0, GROUPS - first.length - last.length)).fill('0');
  return [...first, ...zeros, ...last].slice(0, PREFIX_GROUPS);
}

const splitGroups = (text: string): readonly string[] => (text === '' ? [] : text.split(':'));
