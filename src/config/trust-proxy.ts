import { BlockList, isIP } from 'node:net';

/** `TRUST_PROXY`: whom to believe about the caller's address. */
export type TrustProxy =
  | { readonly kind: 'all' }
  | { readonly kind: 'none' }
  /** The n-th address from the right. */
  | { readonly kind: 'hops'; readonly hops: number }
  /** Trusted proxies are skipped from the right. */
  | { readonly kind: 'networks'; readonly trusts: (address: string) => boolean };

export function parseTrustProxy(text: string): TrustProxy | undefined {
  if (text === 'all' || text === 'none') return { kind: text };
  if (/^\d+$/.test(text)) {
    const hops = Number(text);
    return hops >= 1 && hops <= 100 ? { kind: 'hops', hops } : undefined;
  }
  const networks = new BlockList();
  const known = text.split(',').every((entry) => addNetwork(networks, entry.trim()));
  if (!known) return undefined;
  const trusts = (address: string) => {
    const family = isIP(address);
    return family !== 0 && networks.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
  return { kind: 'networks', trusts };
}

function addNetwork(networks: BlockList, entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0 || address.includes('%')) return false;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  if (bits === undefined) {
    networks.addAddress(address, type);
    return true;
  }
  if (!/^\d{1,3}$/.test(bits) || Number(bits) > (family === 4 ? 32 : 128)) return false;
  networks.addSubnet(address, Number(bits), type);
  return true;
}
