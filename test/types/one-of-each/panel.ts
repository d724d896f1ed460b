// A panel of the operators' page: `GET /admin/api/tea`.
import type { AdminPanel } from '../../../src/http/endpoint/admin-panel.ts';

export const createTeaPanel = (minutes: number): AdminPanel => ({
  method: 'GET',
  path: '/tea',
  show: () => ({ minutes }),
});
