from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_last_check_message'),
    ]

    operations = [
        migrations.RemoveConstraint('hostname', 'proved_by_one_account'),
        migrations.RenameField('hostname', 'proof', 'verification'),
        migrations.RenameField('hostname', 'proved_at', 'verified_at'),
        migrations.AddConstraint(
            'hostname',
            models.UniqueConstraint(
                condition=models.Q(('verification', ''), _negated=True), fields=('name',), name='verified_by_one_account'
            ),
        ),
    ]
