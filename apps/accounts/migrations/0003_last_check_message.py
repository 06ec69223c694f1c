from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_hostname_claims'),
    ]

    operations = [
        migrations.RenameField('hostname', 'check_said', 'last_check_message'),
    ]
