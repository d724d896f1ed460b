import { generate } from 'selfsigned';

/** A certificate of its own authority for a host name, or for 127.0.0.1. */
export async function issueCertificate(
  name: string,
): Promise<{ readonly key: string; readonly cert: string }> {
  const altNames = [
    name === '127.0.0.1' ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
  ];
  const made = await generate([{ name: 'commonName', value: name }], {
    keyType: 'ec',
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames },
    ],
  });
  return { key: made.private, cert: made.cert };
}
