from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('observe', '0008_node_certificates'),
    ]

    operations = [
        migrations.AddField(
            model_name='nodereport',
            name='features',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='nodereport',
            name='protocols',
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name='nodereport',
            name='tls_library',
            field=models.CharField(blank=True, db_default='', max_length=80),
        ),
    ]
