from django.db import migrations

RENAMED = {
    'account.viewed': 'account.impersonated',
    'account.viewing_stopped': 'account.impersonation_stopped',
    'hostname.proved': 'hostname.verified',
    'hostname.proof_lost': 'hostname.verification_lost',
    'hostname.rest_ended': 'hostname.cooldown_ended',
}


def rename_events(apps, schema_editor):
    for hook in apps.get_model('webhooks', 'Webhook').objects.all():
        renamed = [RENAMED.get(each, each) for each in hook.event_types]
        if renamed != hook.event_types:
            hook.event_types = renamed
            hook.save(update_fields=('event_types',))


class Migration(migrations.Migration):

    dependencies = [
        ('webhooks', '0002_disabled_reason'),
    ]

    operations = [migrations.RunPython(rename_events, migrations.RunPython.noop)]
