// `postern doctor URL` where the connection fails, or is not trusted: what Node.js says of that, told in words.
import { writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { runDoctor } from '../support/gateway/doctor.ts';
import { freePort } from '../support/gateway/ports.ts';
import { endPosterns } from '../support/gateway/process.ts';
import { startBrokerBehind } from '../support/gateway/process-broker.ts';
import { closeAfterTest, useShared } from '../support/lifetimes.ts';
import { startIssuer } from '../support/oauth/issuer.ts';
import { newCertificate } from '../support/stores/redis.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

afterEach(endPosterns);

const issuer = useShared(startIssuer);

test('§20.2 doctor URL: nothing listens there, no such name, and no gateway', async () => {
  const port = await freePort();
  const nobody = await runDoctor(`localhost:${port}`);
  expect([nobody.code, nobody.failures]).toEqual([1, ['gateway.reachable']]);
  expect(nobody.find('gateway.reachable').what).toBe(`Nothing listens at localhost:${port}.`);
  const nameless = await runDoctor('https://gateway.invalid');
  expect(nameless.find('gateway.reachable').what).toContain('cannot be resolved');
  const other = await runDoctor(issuer.url);
  expect(other.code).toBe(1);
});

test('§20.2 doctor URL: TLS: a certificate that is not trusted, one that is, and none; an unknown redirect URI', async () => {
  const { cert, key } = await newCertificate();
  const gatewayPort = await freePort();
  const front = createTlsServer({ cert, key }, (req, res) => {
    const { method, url: path, headers } = req;
    const onward = request(
      { host: '127.0.0.1', port: gatewayPort, method, path, headers },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    onward.on('error', () => res.destroy());
    req.pipe(onward);
  });
  await new Promise<void>((listening) => front.listen(0, '127.0.0.1', listening));
  const { port } = front.address() as AddressInfo;
  const url = `https://127.0.0.1:${port}`;
  await startBrokerBehind(url, gatewayPort);
  const folder = closeAfterTest(await createTemporaryFolder());
  const ca = join(folder.path, 'ca.pem');
  await writeFile(ca, cert);

  const untrusted = await runDoctor(url);
  expect(untrusted.failures).toEqual(['gateway.certificate']);
  expect(untrusted.find('gateway.certificate').what).toContain('is not trusted here');
  const trusted = await runDoctor(url, { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(trusted.failures).toEqual([]);
  expect(trusted.find('gateway.certificate').what).toMatch(/valid for \d+ more days/);
  const plain = await runDoctor(`https://localhost:${gatewayPort}`);
  expect(plain.find('gateway.reachable').what).toContain('does not speak TLS');

  await endPosterns();
  await startBrokerBehind(url, gatewayPort, 'https://other.example');
  const unregistered = await runDoctor(url, { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(unregistered.failures).toEqual(['provider.redirect-uri']);
  expect(unregistered.find('provider.redirect-uri').remedy).toContain(
    `register exactly ${url}/oauth/callback`,
  );

  front.closeAllConnections();
  await new Promise((closed) => front.close(closed));
});
