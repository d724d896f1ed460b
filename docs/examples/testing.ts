import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createLocalCatalog } from 'postern/define';
import { connect, type TestClient } from 'postern/testing';
import { deleteVolume } from './ask.ts';
import { deployedVersion } from './tool.ts';

let typed = '';
let client: TestClient;

before(async () => {
  client = await connect(createLocalCatalog({ tools: [deployedVersion, deleteVolume] }), {
    user: { name: 'Ada', groups: ['operators'] },
    answer: { elicit: () => ({ action: 'accept', content: { name: typed } }) },
  });
});
after(() => client.close());

test('an unknown service is a failure that the model sees', async () => {
  const result = await client.callTool('deployed_version', { service: 'mail' });
  assert.equal(result.isError, true);
});

test('a volume is deleted only if its name is typed', async () => {
  typed = 'archive';
  const kept = await client.callTool('delete_volume', { volume: 'backups' });
  assert.deepEqual(kept.content, [
    { type: 'text', text: 'Kept backups: you typed a different name.' },
  ]);

  typed = 'backups';
  const deleted = await client.callTool('delete_volume', { volume: 'backups' });
  assert.deepEqual(deleted.content, [{ type: 'text', text: 'Deleted backups.' }]);
});
