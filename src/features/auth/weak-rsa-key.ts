// CVE-2017-15361 (ROCA): RSA keys of a broken generator, whose private key can be computed.

const GENERATOR = 65_537n;

const PRIMES = [
  3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101,
  103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167,
].map(BigInt);

/**
 * Whether a modulus bears the mark of that generator: modulo every small prime it is a power of
 * 65537. A sound modulus does so by chance about once in 2^27 or more.
 */
export const hasRocaWeakness = (modulus: bigint): boolean =>
  powersByPrime.every(([prime, powers]) => powers.has(modulus % prime));

const powersByPrime = PRIMES.map((prime) => [prime, powersModulo(prime)] as const);

function powersModulo(prime: bigint): ReadonlySet<bigint> {
  const powers = new Set<bigint>();
  for (let power = 1n; !powers.has(power); power = (power * GENERATOR) % prime) powers.add(power);
  return powers;
}
